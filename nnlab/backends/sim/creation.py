"""New arrays on the device. `zeros` is a fill by the driver; the others are kernels; `empty` costs its memory only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nnlab.backends.sim.core import DeviceArray, refusal
from nnlab.backends.sim.gpu import Gpu
from nnlab.backends.sim.pinned import is_pinned
from nnlab.backends.sim.shaping import astype

Shape = int | tuple[int, ...]


def upload(gpu: Gpu, host: np.ndarray, name: str = "asarray") -> Any:
    """A host array, copied to the device. Raises TypeError for text and objects."""
    require_numbers(host)
    lease = gpu.allocate(host.nbytes)
    gpu.upload(name, host.nbytes, pinned=is_pinned(host))
    return gpu.wrap(np.array(host, order="C", subok=False), lease)


def require_numbers(host: np.ndarray) -> None:
    """Raise TypeError for what no GPU array can hold."""
    if host.dtype.kind not in "fiubc":
        raise TypeError(f"a GPU array holds numbers; this is {host.dtype} with shape {host.shape}")


def number(gpu: Gpu, value: Any, dtype: Any) -> Any:
    """A 0-d array of a number, which goes to the device in the call of a fill and needs no copy."""
    return _fill(gpu.wrap(np.empty((), dtype)), value)


class Creation:
    """The array-making functions of one home's `xp`."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu

    def empty(self, shape: Shape, dtype: Any = "float64") -> Any:
        """Memory with no values set."""
        gpu = self._gpu
        nbytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        lease = gpu.allocate(nbytes)
        return gpu.wrap(np.empty(shape, dtype), lease)

    def zeros(self, shape: Shape, dtype: Any = "float64") -> Any:
        """All 0, by the driver's own fill."""
        return _fill(self.empty(shape, dtype), 0, "zeros")

    def full(self, shape: Shape, fill_value: Any, dtype: Any = None) -> Any:
        """All `fill_value`, of its type unless `dtype` says otherwise."""
        if dtype is None:
            dtype = fill_value._data.dtype if isinstance(fill_value, DeviceArray) else np.asarray(fill_value).dtype
        return _fill(self.empty(shape, dtype), fill_value)

    def ones(self, shape: Shape, dtype: Any = "float64") -> Any:
        """All 1."""
        return self.full(shape, 1, dtype)

    def empty_like(self, a: Any, dtype: Any = None) -> Any:
        return self.empty(a.shape, dtype or a.dtype)

    def zeros_like(self, a: Any, dtype: Any = None) -> Any:
        return self.zeros(a.shape, dtype or a.dtype)

    def ones_like(self, a: Any, dtype: Any = None) -> Any:
        return self.ones(a.shape, dtype or a.dtype)

    def full_like(self, a: Any, fill_value: Any, dtype: Any = None) -> Any:
        return self.full(a.shape, fill_value, dtype or a.dtype)

    def arange(self, start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Any:
        """Evenly stepped numbers, made on the device."""
        first, last = (0, start) if stop is None else (start, stop)
        make: Any = np.arange
        return self._made("arange", lambda: make(first, last, step, dtype))

    def linspace(self, start: float, stop: float, num: int = 50, endpoint: bool = True, dtype: Any = None) -> Any:
        """Evenly spaced numbers, made on the device."""
        return self._made("linspace", lambda: np.linspace(start, stop, num, endpoint, dtype=dtype))

    def eye(self, n: int, m: int | None = None, k: int = 0, dtype: Any = "float64") -> Any:
        """Ones on a diagonal: a fill with zeros, then one kernel."""
        array = self.zeros((n, n if m is None else m), dtype)
        return _fill(array, np.eye(n, m, k, dtype))

    def identity(self, n: int, dtype: Any = "float64") -> Any:
        return self.eye(n, dtype=dtype)

    def array(self, value: Any, dtype: Any = None, copy: bool = True) -> Any:
        """A new device array of a device array, a list or a host array (those are uploaded)."""
        if isinstance(value, DeviceArray):
            if value._gpu is not self._gpu:
                raise refusal(self._gpu, "array", 1, value)
            wanted = value._data.dtype if dtype is None else np.dtype(dtype)
            return astype(value, wanted, copy)
        host = np.asarray(value, dtype)
        require_numbers(host)
        return upload(self._gpu, host) if host.ndim else number(self._gpu, host[()], host.dtype)

    def asarray(self, value: Any, dtype: Any = None) -> Any:
        """As `array`, without a copy of what is here already. It keeps NumPy's types; backend.asarray takes b.dtype."""
        return self.array(value, dtype, copy=False)

    def ascontiguousarray(self, a: Any) -> Any:
        return a if a._data.flags.c_contiguous else a.copy()

    def _made(self, name: str, make: Callable[[], np.ndarray]) -> Any:
        data = make()
        seconds = self._gpu.device.elementwise(data.nbytes)
        return self._gpu.result(data, "ufunc", name, seconds, lambda out: np.copyto(out, make()))


def _fill(array: Any, value: Any, name: str = "fill") -> Any:
    """Set all elements: zeros by the driver, anything else by a kernel."""
    gpu, data = array._gpu, array._data
    source = value._data if isinstance(value, DeviceArray) else value

    def run() -> None:
        data[...] = source

    if gpu.graph is None:
        run()
    else:
        gpu.graph.actions.append(run)
    zeros = np.ndim(source) == 0 and not isinstance(value, DeviceArray) and source == 0
    gpu.launch("memset" if zeros else "ufunc", name, gpu.device.elementwise(data.nbytes), data.dtype.char)
    return array
