"""`xp` of a simulated GPU: the functions of NumPy that it supports. Any other name raises and says so."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnlab.backends.sim.array import SimArray
from nnlab.backends.sim.combining import COMBINING
from nnlab.backends.sim.creation import Creation
from nnlab.backends.sim.gpu import Gpu
from nnlab.backends.sim.indexing import nonzero, take
from nnlab.backends.sim.linalg import Linalg
from nnlab.backends.sim.products import dot, einsum, matmul
from nnlab.backends.sim.random import Random
from nnlab.backends.sim.reductions import REDUCTIONS
from nnlab.backends.sim.shaping import SHAPING
from nnlab.backends.sim.ufuncs import UFUNCS

_CONSTANTS = ["pi", "e", "inf", "nan", "newaxis"]
_TYPES = [
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool_",
    "complex64",
    "complex128",
]
_HOST = ["dtype", "finfo", "iinfo", "promote_types", "broadcast_shapes"]


class Namespace(Creation):
    """The array module of one simulated GPU."""

    ndarray = SimArray

    def __init__(self, gpu: Gpu) -> None:
        super().__init__(gpu)
        self.random = Random(gpu)
        self.linalg = Linalg()
        functions: dict[str, Any] = {**UFUNCS, **REDUCTIONS, **SHAPING}
        functions |= {"take": take, "nonzero": nonzero, "matmul": matmul, "dot": dot, "einsum": einsum}
        functions |= {"round": SHAPING["around"], **COMBINING}
        vars(self).update(functions)
        vars(self).update({name: getattr(np, name) for name in (*_CONSTANTS, *_TYPES, *_HOST)})

    def __getattr__(self, name: str) -> Any:
        if hasattr(np, name):
            raise AttributeError(
                f"the simulated GPU does not support numpy.{name}; build it from the functions in dir(backend.xp), "
                f"or take the array to the host with backend.to_host(array)"
            )
        raise AttributeError(f"neither NumPy nor the simulated GPU has a function {name!r}")

    def __repr__(self) -> str:
        return f"<array functions of {self._gpu.home}>"
