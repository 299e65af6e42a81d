"""Other shapes of the same values. What can be a view is one and costs nothing; the rest is one copy on the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nnlab.backends.sim.core import gpu_of, refusal, unwrap
from nnlab.backends.sim.gpu import quiet

_SMALL = 2 * 2**20  # bytes


def _view(name: str, call: Callable[..., np.ndarray]) -> Callable[..., Any]:
    def shaped(a: Any, *args: Any, **options: Any) -> Any:
        gpu = gpu_of(name, a)
        data: np.ndarray = a._data
        result = call(data, *args, **options)
        if result.size == 0 or np.may_share_memory(result, data):
            return gpu.wrap(result, a._lease)

        def redo(out: np.ndarray) -> None:
            np.copyto(out, call(data, *args, **options))

        return gpu.result(result, "ufunc", "copy", gpu.device.elementwise(2 * result.nbytes), redo)

    shaped.__name__ = shaped.__qualname__ = name
    shaped.__doc__ = f"`{name}` as NumPy has it: a view where NumPy makes one."
    return shaped


def copy(a: Any, order: str = "C") -> Any:
    """A copy in memory of its own."""
    gpu = gpu_of("copy", a)
    data: np.ndarray = a._data
    result = np.array(data, order="K" if order == "K" else "C")
    seconds = gpu.device.elementwise(2 * data.nbytes)
    return gpu.result(result, "ufunc", "copy", seconds, lambda out: np.copyto(out, data))


def astype(a: Any, dtype: Any, copy: bool = True) -> Any:
    """The values in another type, one kernel; none if the type fits and copy is False."""
    gpu = gpu_of("astype", a)
    data: np.ndarray = a._data
    if not copy and data.dtype == np.dtype(dtype):
        return a
    with quiet():
        result = data.astype(dtype)
    seconds = gpu.device.elementwise(data.nbytes + result.nbytes)
    return gpu.result(result, "ufunc", "astype", seconds, lambda out: np.copyto(out, data, casting="unsafe"))


def concatenate(arrays: Sequence[Any], axis: int | None = 0) -> Any:
    """The arrays behind one another along `axis`: one copy for each, or for more than 8 small ones a single kernel.

    That kernel is told their addresses, in an upload.
    """
    gpu = gpu_of("concatenate", *arrays)
    data = [unwrap(gpu, "concatenate", array, position) for position, array in enumerate(arrays, 1)]
    result = np.concatenate(data, axis=axis)
    if len(data) > 8 and result.nbytes < _SMALL * len(data) and len({part.dtype for part in data}) == 1:
        gpu.upload("concatenate", 8 * len(data), pinned=False)
        if len({part.shape for part in data}) > 1:
            gpu.upload("concatenate", 4 * len(data), pinned=False)
        return gpu.result(result, "ufunc", "concatenate", gpu.device.elementwise(2 * result.nbytes))
    for part in data[:-1]:
        gpu.launch("ufunc", "copy", gpu.device.elementwise(2 * part.nbytes), result.dtype.char)
    last = gpu.device.elementwise(2 * data[-1].nbytes)
    return gpu.result(result, "ufunc", "copy", last, lambda out: np.concatenate(data, axis=axis, out=out))


def stack(arrays: Sequence[Any], axis: int = 0) -> Any:
    """The arrays behind one another along a new axis."""
    return concatenate([expand_dims(array, axis) for array in arrays], axis)


def vstack(arrays: Sequence[Any]) -> Any:
    """Rows below rows."""
    return concatenate([array if array.ndim > 1 else expand_dims(array, 0) for array in arrays], 0)


def hstack(arrays: Sequence[Any]) -> Any:
    """Columns beside columns."""
    return concatenate(arrays, 0 if arrays[0].ndim == 1 else 1)


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """`x` where the condition holds, else `y`: one kernel, no wait. (With the condition alone, use nonzero.)"""
    if x is None or y is None:
        raise TypeError("where takes a condition, x and y; for the indices use condition.nonzero(), which waits")
    return one_kernel("where", np.where, condition, x, y)


def clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None) -> Any:
    """`a` held within [a_min, a_max]."""
    return one_kernel("clip", np.clip, a, a_min, a_max, out=out)


def around(a: Any, decimals: int = 0) -> Any:
    """`a` rounded to `decimals`, halves to even."""
    return one_kernel("around", np.around, a, decimals)


def sort(a: Any, axis: int = -1) -> Any:
    """`a` in order along `axis`."""
    return one_kernel("sort", lambda data: np.sort(data, axis=axis), a)


def argsort(a: Any, axis: int = -1) -> Any:
    """The indices that put `a` in order along `axis`."""
    return one_kernel("argsort", lambda data: np.argsort(data, axis=axis), a)


def one_kernel(name: str, call: Callable[..., Any], *args: Any, out: Any = None) -> Any:
    """One kernel that computes `call` of the arguments."""
    gpu = gpu_of(name, *args)
    data = [arg if arg is None else unwrap(gpu, name, arg, position) for position, arg in enumerate(args, 1)]
    with quiet():
        result = np.asarray(call(*data))
    moved = result.nbytes + sum(part.nbytes for part in data if isinstance(part, np.ndarray))
    seconds = gpu.device.elementwise(moved)

    def redo(into: np.ndarray) -> None:
        with quiet():
            np.copyto(into, call(*data))

    if out is None:
        return gpu.result(result, "ufunc", name, seconds, redo)
    if getattr(out, "_gpu", None) is not gpu:
        raise refusal(gpu, f"{name}(out=...)", 1, out)
    if gpu.graph is None:
        np.copyto(out._data, result)
    else:
        gpu.graph.actions.append(lambda: redo(out._data))
    gpu.launch("ufunc", name, seconds, result.dtype.char)
    return out


reshape, ravel, transpose = _view("reshape", np.reshape), _view("ravel", np.ravel), _view("transpose", np.transpose)
swapaxes, moveaxis = _view("swapaxes", np.swapaxes), _view("moveaxis", np.moveaxis)
expand_dims, squeeze = _view("expand_dims", np.expand_dims), _view("squeeze", np.squeeze)
broadcast_to, flip, diagonal = (
    _view("broadcast_to", np.broadcast_to),
    _view("flip", np.flip),
    _view("diagonal", np.diagonal),
)

SHAPING: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        reshape,
        ravel,
        transpose,
        swapaxes,
        moveaxis,
        expand_dims,
        squeeze,
        broadcast_to,
        flip,
        diagonal,
        copy,
        concatenate,
        stack,
        vstack,
        hstack,
        where,
        clip,
        around,
        sort,
        argsort,
    )
}
