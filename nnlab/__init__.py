"""nnlab: build a network from nothing, move it to the GPU, read the receipt, and let it paint.

Importing nnlab loads nothing heavy, not even NumPy: each public name is fetched when it is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_ROOMS = ("backends", "nn", "optim", "engines", "training", "tensor", "images", "datasets", "lessons", "errors")
_FUNCTIONS = ("backend", "gpu", "gpu_available", "available_backends")

__all__ = [*_ROOMS, *_FUNCTIONS, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"nnlab.{name}")
    if name in _FUNCTIONS:
        return getattr(importlib.import_module("nnlab.backends"), name)
    raise AttributeError(f"module 'nnlab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
