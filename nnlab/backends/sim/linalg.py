"""`xp.linalg`: solve, inv and norm. As on the card, a singular matrix gives inf and NaN and no error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nnlab.backends.sim.core import gpu_of, unwrap
from nnlab.backends.sim.gpu import quiet


def solve(a: Any, b: Any) -> Any:
    """x with `a @ x = b`; inf and NaN where `a` is singular."""
    return _solver("solve", np.linalg.solve, a, b)


def inv(a: Any) -> Any:
    """The inverse; inf where `a` is singular."""
    return _solver("inv", np.linalg.inv, a)


def norm(a: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    """The root of the sum of squares."""
    from nnlab.backends.sim.reductions import total
    from nnlab.backends.sim.ufuncs import UFUNCS

    squares = total(UFUNCS["multiply"](a, a), axis, keepdims=keepdims)
    return UFUNCS["sqrt"](squares, out=squares)


def _solver(name: str, call: Callable[..., Any], *arrays: Any) -> Any:
    gpu = gpu_of(name, *arrays)
    if gpu.graph is not None:
        gpu.refuse_capture(f"linalg.{name}", "solve before the capture")
    data = [unwrap(gpu, name, array, position) for position, array in enumerate(arrays, 1)]
    try:
        with quiet():
            result = call(*data)
    except np.linalg.LinAlgError:
        if data[0].ndim < 2 or data[0].shape[-1] != data[0].shape[-2]:
            raise
        result = np.full_like(data[-1], np.inf, dtype=np.result_type(data[-1].dtype, np.float32))
    size = data[0].shape[-1]
    return gpu.result(result, "solver", name, gpu.device.product(size, size, size, result.dtype.itemsize) * 4)


class Linalg:
    """`xp.linalg` of a simulated GPU."""

    LinAlgError = np.linalg.LinAlgError
    solve, inv, norm = staticmethod(solve), staticmethod(inv), staticmethod(norm)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the simulated GPU has no xp.linalg.{name}; it has solve, inv and norm")
