"""Ways to run training steps: all compute the same, at different cost."""

from inspect import signature
from typing import Any

from nnlab.engines.auto import Auto
from nnlab.engines.base import Engine, Session
from nnlab.engines.eager import Eager
from nnlab.engines.fused import Fused, FusedTF32
from nnlab.engines.graph import CudaGraph
from nnlab.engines.tiled import Tiled
from nnlab.errors import UnknownName

__all__ = ["ENGINES", "Auto", "CudaGraph", "Eager", "Engine", "Fused", "FusedTF32", "Session", "Tiled", "engine"]

ENGINES: dict[str, type[Engine]] = {kind.name: kind for kind in (Eager, CudaGraph, Tiled, Fused, FusedTF32, Auto)}


def engine(name: str, **settings: Any) -> Engine:
    """The engine called `name`, with its settings.

    Raises UnknownName with the nearest valid one, and TypeError for a setting that the engine does not have.
    """
    if name not in ENGINES:
        raise UnknownName("engine", name, ENGINES)
    known = signature(ENGINES[name]).parameters
    for setting in settings:
        if setting not in known:
            raise TypeError(f"the engine {name!r} has no setting {setting!r}; it takes {', '.join(known) or 'none'}")
    return ENGINES[name](**settings)
