"""Functions made of a few kernels: comparing arrays, repeating and combining them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nnlab.backends.sim.core import DeviceArray
from nnlab.backends.sim.reductions import REDUCTIONS
from nnlab.backends.sim.shaping import broadcast_to, copy, expand_dims, one_kernel
from nnlab.backends.sim.ufuncs import UFUNCS


def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Where |a - b| <= atol + rtol |b|."""
    return one_kernel("isclose", lambda x, y: np.isclose(x, y, rtol, atol, equal_nan), a, b)


def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Is `isclose` true everywhere? A 0-d array: `if allclose(...)` waits."""
    return REDUCTIONS["all"](isclose(a, b, rtol, atol, equal_nan))


def array_equal(a: Any, b: Any) -> Any:
    """Have both arrays one shape and equal elements? A 0-d array where they must be compared."""
    return REDUCTIONS["all"](UFUNCS["equal"](a, b)) if a.shape == b.shape else False


def count_nonzero(a: Any, axis: Any = None) -> Any:
    """How many elements are not zero."""
    return REDUCTIONS["sum"](UFUNCS["not_equal"](a, 0), axis)


def repeat(a: Any, repeats: int, axis: int | None = None) -> Any:
    """Each element `repeats` times in a row."""
    return one_kernel("repeat", lambda x: np.repeat(x, repeats, axis), a)


def tile(a: Any, reps: Any) -> Any:
    """The whole array `reps` times."""
    return one_kernel("tile", lambda x: np.tile(x, reps), a)


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """The elements moved on by `shift`, those that leave come in again."""
    return one_kernel("roll", lambda x: np.roll(x, shift, axis), a)


def diff(a: Any, axis: int = -1) -> Any:
    """Each element minus the one before."""
    place = axis % a.ndim
    later, earlier = ((slice(None),) * place + (part,) for part in (slice(1, None), slice(None, -1)))
    return UFUNCS["subtract"](a[later], a[earlier])


def outer(a: Any, b: Any) -> Any:
    """Every element of `a` times every element of `b`."""
    return UFUNCS["multiply"](a.ravel()[:, None], b.ravel()[None, :])


def meshgrid(*axes: Any, indexing: str = "xy") -> list[Any]:
    """A grid of coordinates for each axis, each copied out to the full shape."""
    shape = [axis.size for axis in axes]
    grids = []
    for place, axis in enumerate(axes):
        view = axis.ravel()
        for other in range(len(axes)):
            if other != place:
                view = expand_dims(view, other)
        grid = broadcast_to(view, tuple(shape))
        grids.append(copy(grid.swapaxes(0, 1) if indexing == "xy" and len(axes) > 1 else grid))
    return grids


def nan_to_num(a: Any, nan: float = 0.0) -> Any:
    """NaN replaced by `nan`, infinities by the largest numbers of the type."""
    return one_kernel("nan_to_num", lambda x: np.nan_to_num(x, nan=nan), a)


def result_type(*values: Any) -> np.dtype[Any]:
    """The type that an operation on the arrays, types and numbers gives; nothing is run."""
    return np.result_type(*(value._data.dtype if isinstance(value, DeviceArray) else value for value in values))


COMBINING: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        isclose,
        allclose,
        array_equal,
        count_nonzero,
        repeat,
        tile,
        roll,
        diff,
        outer,
        meshgrid,
        nan_to_num,
        result_type,
    )
}
