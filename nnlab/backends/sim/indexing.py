"""Reading and writing parts of an array, as CuPy does it.

Slices and numbers make views, without a launch. Index arrays gather, one kernel, and wrap round when out of range.
Boolean masks must first be counted: a scan, a copy to the host, and a wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from nnlab.backends.sim.core import DeviceArray, refusal
from nnlab.backends.sim.creation import number, upload
from nnlab.backends.sim.gpu import Gpu, quiet

BASIC = (int, slice, type(None), type(Ellipsis), np.integer)


def getitem(a: Any, key: Any) -> Any:
    """`a[key]`."""
    data: np.ndarray = a._data
    if _is_basic(key):
        return a._gpu.wrap(_view(data, key), a._lease)
    gpu: Gpu = a._gpu
    parts, masked = _parts(a, key)
    if masked:
        _count(gpu, "x[mask]", data)
    result = data[parts()]
    seconds = gpu.device.elementwise(2 * result.nbytes + data.nbytes * masked)
    name = "x[mask]" if masked else "take"
    return gpu.result(result, "indexing", name, seconds, lambda out: np.copyto(out, data[parts()]))


def setitem(a: Any, key: Any, value: Any) -> None:
    """`a[key] = value`."""
    gpu: Gpu = a._gpu
    data: np.ndarray = a._data
    if not isinstance(value, DeviceArray) and not np.isscalar(value):
        raise refusal(gpu, "x[...] = value", 1, value)
    if isinstance(value, DeviceArray) and value._gpu is not gpu:
        raise refusal(gpu, "x[...] = value", 1, value)
    host = value._data if isinstance(value, DeviceArray) else value
    if _is_basic(key):
        target = _view(data, key)
        if isinstance(host, np.ndarray) and _same(target, host):
            return
        name = "copy" if isinstance(host, np.ndarray) else "fill"
        driver = name == "fill" and host == 0 and target.flags.c_contiguous  # zeros are filled in by the driver
        _write(gpu, "memset" if driver else "ufunc", name, target, lambda: ..., host, 2 * target.nbytes)
        return
    parts, masked = _parts(a, key)
    name = "x[mask] = value" if masked else "x[index] = value"
    if masked:
        _count(gpu, name, data)
    if not isinstance(host, np.ndarray):  # a number becomes an array of one element first
        host = number(gpu, host, data.dtype)._data
    _write(gpu, "indexing", name, data, parts, host, 2 * data.nbytes)


def take(a: Any, indices: Any, axis: int | None = None) -> Any:
    """`a` at `indices` along `axis` (None: of the flattened array); out of range wraps round."""
    if not isinstance(a, DeviceArray):
        raise TypeError("take needs a device array; make one with backend.asarray(...)")
    gpu = a._gpu
    index = _index_array(gpu, indices)._data if not isinstance(indices, int) else indices
    data = a._data

    def gather() -> Any:
        return np.take(data, index, axis=axis, mode="wrap")

    result = np.asarray(gather())
    seconds = gpu.device.elementwise(2 * result.nbytes)
    return gpu.result(result, "indexing", "take", seconds, lambda out: np.copyto(out, gather()))


def nonzero(a: Any) -> Any:
    """The indices of all elements that are not zero; counting them waits."""
    gpu: Gpu = a._gpu
    if a._data.dtype.kind != "b":
        gpu.launch("ufunc", "not_equal", gpu.device.elementwise(a._data.nbytes))
    _count(gpu, "nonzero", a._data)
    found = gpu.wrap(np.argwhere(a._data))
    gpu.launch("indexing", "nonzero", gpu.device.elementwise(a._data.nbytes))
    return tuple(found[:, axis] for axis in range(a._data.ndim))


def _is_basic(key: Any) -> bool:
    return all(_basic_part(part) for part in (key if isinstance(key, tuple) else (key,)))


def _basic_part(part: Any) -> bool:
    return isinstance(part, BASIC) and not isinstance(part, bool)  # a bool is an int to Python, a mask to NumPy


def _view(data: np.ndarray, key: Any) -> np.ndarray:
    """A view, also where NumPy would give a single element."""
    keys = key if isinstance(key, tuple) else (key,)
    view: np.ndarray = data[keys if Ellipsis in keys else (*keys, ...)]
    return view


def _parts(a: Any, key: Any) -> tuple[Callable[[], Any], bool]:
    """What makes the key for NumPy, and whether a mask is in it.

    Index arrays are wrapped into range when the kernel runs, since a replayed graph finds new values in them.
    """
    parts: list[Any] = []
    axis, masked = 0, False
    keys = key if isinstance(key, tuple) else (key,)
    taken = sum(_axes(part) for part in keys)
    for part in keys:
        if part is Ellipsis:
            axis += a._data.ndim - taken
            parts.append(part)
        elif _basic_part(part):
            axis += part is not None
            parts.append(part)
        else:
            index = _index_array(a._gpu, part)._data
            if index.dtype.kind == "b":
                masked = True
                axis += index.ndim
                parts.append(index)
            elif index.dtype.kind in "iu":
                size = a._data.shape[axis] if axis < a._data.ndim else 0
                parts.append(_Wrapped(index, size) if size else index)
                axis += 1
            else:
                raise IndexError(f"arrays used as indices must be of integer or boolean type, not {index.dtype}")
    return lambda: tuple(part.now() if isinstance(part, _Wrapped) else part for part in parts), masked


class _Wrapped(NamedTuple):
    """An index array for an axis of `size` elements."""

    values: np.ndarray
    size: int

    def now(self) -> Any:
        return np.remainder(self.values, self.size)


def _axes(part: Any) -> int:
    if part is None or part is Ellipsis:
        return 0
    if isinstance(part, DeviceArray) and part._data.dtype.kind == "b":
        return part._data.ndim
    return 1


def _index_array(gpu: Gpu, part: Any) -> Any:
    """An index that is no device array yet: a list goes up, in a copy that the receipt shows."""
    if isinstance(part, DeviceArray):
        if part._gpu is not gpu:
            raise refusal(gpu, "indexing", 1, part)
        return part
    if isinstance(part, list | tuple):
        return upload(gpu, np.asarray(part), "x[list]")
    if isinstance(part, np.ndarray):
        raise refusal(gpu, "indexing", 1, part)
    raise IndexError(f"an index is a whole number, a slice, or an array of integers or booleans, not {part!r}")


def _count(gpu: Gpu, name: str, data: np.ndarray) -> None:
    gpu.launch("scan", "scan of the mask", gpu.device.elementwise(5 * data.size))
    gpu.download(name, 4)


def _write(gpu: Gpu, kind: str, name: str, data: np.ndarray, key: Callable[[], Any], value: Any, moved: int) -> None:
    def run() -> None:
        with quiet():
            data[key()] = value

    if gpu.graph is None:
        run()
    else:
        gpu.graph.actions.append(run)
    gpu.launch(kind, name, gpu.device.elementwise(moved), data.dtype.char)


def _same(target: np.ndarray, source: np.ndarray) -> bool:
    """The same memory, as in `x[1:] += 1`, where Python assigns the result to itself."""
    return target.__array_interface__["data"] == source.__array_interface__["data"] and (
        target.shape == source.shape and target.strides == source.strides
    )
