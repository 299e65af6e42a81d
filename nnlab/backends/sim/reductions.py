"""Reductions. Their result stays on the device, a 0-d array where nothing is left of the shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from nnlab.backends.sim.core import DeviceArray, gpu_of, refusal
from nnlab.backends.sim.device import Device
from nnlab.backends.sim.gpu import quietly
from nnlab.backends.sim.ufuncs import UFUNCS

Axis = int | tuple[int, ...] | None


def _reduction(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """The reduction `name` on device arrays: one kernel."""

    def reduce(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        if not isinstance(a, DeviceArray):
            raise TypeError(f"xp.{name} needs a device array; make one with backend.asarray(...)")
        gpu, data = a._gpu, a._data
        options: dict[str, Any] = {"axis": axis}
        if dtype is not None:
            options["dtype"] = dtype
        if keepdims:
            options["keepdims"] = True

        def run(into: np.ndarray) -> None:
            quietly.run(call, data, out=into, **options)

        if out is None:
            result = np.asarray(quietly.run(call, data, **options))
            return gpu.result(result, "reduction", name, reduction_seconds(gpu.device, data, axis), run)
        if not (isinstance(out, DeviceArray) and out._gpu is gpu):
            raise refusal(gpu, f"{name}(out=...)", 1, out)
        if gpu.graph is None:
            run(out._data)
        else:
            gpu.graph.actions.append(lambda: run(out._data))
        gpu.launch("reduction", name, reduction_seconds(gpu.device, data, axis), data.dtype.char)
        return out

    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = f"`{name}` of a device array over `axis` (None: all of it), as NumPy computes it."
    return reduce


def reduction_seconds(device: Device, data: np.ndarray, axis: Axis) -> float:
    """Over the rows of a row-major matrix a reduction is slow; over everything, or within rows, memory binds it."""
    if data.ndim > 1 and data.size and not _trailing(data, axis):
        axes = [axis] if isinstance(axis, int) else list(axis or ())
        rows = 1
        for one in axes:
            rows *= data.shape[one]
        return device.sum_rows(rows, data.size // max(rows, 1))
    return device.elementwise(data.nbytes)


def _trailing(data: np.ndarray, axis: Axis) -> bool:
    """Are the reduced axes the innermost ones in memory? Those are the reductions that CuPy leaves to CUB."""
    flags = data.flags
    if axis is None:
        return flags.c_contiguous or flags.f_contiguous
    axes = sorted(normalize_axis_tuple(axis, data.ndim))
    last = flags.c_contiguous and axes == list(range(data.ndim - len(axes), data.ndim))
    return last or (flags.f_contiguous and axes == list(range(len(axes))))


total, prod = _reduction("sum", np.add.reduce), _reduction("prod", np.multiply.reduce)
largest, smallest = _reduction("max", np.maximum.reduce), _reduction("min", np.minimum.reduce)
_all, _any = _reduction("all", np.logical_and.reduce), _reduction("any", np.logical_or.reduce)
argmax, argmin = _reduction("argmax", np.argmax), _reduction("argmin", np.argmin)
_mean_kernel = _reduction("mean", np.mean)
_scan = _reduction("cumsum", np.cumsum)


def mean(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    """The mean. Where the reduced axes are innermost it is a sum and a division, else one kernel."""
    gpu_of("mean", a)
    if not _trailing(a._data, axis) or a._data.size == 0:
        return _mean_kernel(a, axis, dtype, out, keepdims)
    if dtype is None and a._data.dtype.kind in "iub":
        dtype = "float64"
    result = total(a, axis, dtype, out, keepdims)
    return UFUNCS["true_divide"](result, a._data.size // result._data.size, out=result)


def var(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
    """The variance: a mean, then a sum of squared distances to it."""
    centre = mean(a, axis, dtype, None, True)

    def call(data: np.ndarray, **options: Any) -> Any:
        return np.var(data, ddof=ddof, mean=centre._data, **options)

    return _reduction("var", call)(a, axis, dtype, out, keepdims)


def std(a: Any, axis: Axis = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: bool = False) -> Any:
    """The standard deviation: the variance and its root."""
    result = var(a, axis, dtype, out, ddof, keepdims)
    return UFUNCS["sqrt"](result, out=result)


def cumsum(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Any:
    """The running sum, one scan."""
    return _scan(a, axis, dtype, out)


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": total,
    "prod": prod,
    "max": largest,
    "amax": largest,
    "min": smallest,
    "amin": smallest,
    "all": _all,
    "any": _any,
    "argmax": argmax,
    "argmin": argmin,
    "mean": mean,
    "var": var,
    "std": std,
    "cumsum": cumsum,
}
