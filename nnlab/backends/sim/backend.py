"""The simulated GPU as a backend."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Self

import numpy as np

from nnlab.backends.base import Array, Backend, Graph, Memory, check_bytes, float_dtype
from nnlab.backends.receipt import Receipt
from nnlab.backends.shapes import check_product
from nnlab.backends.sim import pinned
from nnlab.backends.sim.array import SimArray
from nnlab.backends.sim.capture import capture
from nnlab.backends.sim.creation import upload
from nnlab.backends.sim.gpu import Gpu, quiet
from nnlab.backends.sim.measuring import measure
from nnlab.backends.sim.namespace import Namespace
from nnlab.backends.sim.pools import Lease
from nnlab.backends.sim.products import backend_matmul
from nnlab.backends.sim.streams import SimStream


class SimBackend(Backend):
    """A simulated GPU: NumPy's values, CuPy's behaviour, exact counts and modelled times, on any machine.

    Times come from the device file; what they leave out is said in `sim.device.NOT_MODELLED`. The kernels that
    cuBLAS and CUB add on a card (split products, second passes of a sum) are not counted here.

    device: a file in `backends/devices` ("h200" is measured, "laptop" estimated). memory: bytes the device has.
    pool: "default", "none" or "async"; release_threshold: bytes that "async" keeps when the host waits.
    Each call makes a new device. Raises UnknownName; ValueError for memory below 1 byte.
    """

    name = "sim"

    def __init__(
        self,
        *,
        dtype: str = "float32",
        device: str = "h200",
        memory: int = 2**30,
        pool: str = "default",
        release_threshold: int = 0,
        gpu: Gpu | None = None,
    ) -> None:
        super().__init__(dtype=dtype)
        check_bytes(memory)
        if memory == 0:
            raise ValueError("a device needs memory of at least 1 byte, not 0")
        self.gpu = gpu or Gpu(device, memory, pool, release_threshold)
        self.xp = _namespace(self.gpu)

    @classmethod
    def holding(cls, array: Array) -> SimBackend:
        return _holding(array._gpu, float_dtype(array))

    @classmethod
    def shared(cls, *, dtype: str) -> SimBackend:
        """The simulated GPU that all calls of `nnlab.gpu()` in this process share."""
        return cls(dtype=dtype, gpu=_shared_gpu())

    @property
    def home(self) -> str:
        return self.gpu.home

    def owns(self, array: object) -> bool:
        return isinstance(array, SimArray) and array._gpu is self.gpu

    def asarray(self, host: Any, *, dtype: str | None = None) -> Any:
        if isinstance(host, SimArray):
            if host._gpu is not self.gpu:
                self.refuse("array", host)
            wanted = dtype or (self.dtype if host.dtype.kind == "f" else host.dtype)
            return host.astype(wanted, copy=False)
        if type(host).__module__.split(".")[0] == "cupy":
            self.refuse("array", host)
        array = np.asarray(host)
        if dtype is not None:
            array = array.astype(dtype, copy=False)
        elif array.dtype.kind == "f":
            array = array.astype(self.dtype, copy=False)
        if array.dtype.kind not in "fiub":
            raise TypeError(f"a GPU array holds numbers; this is {array.dtype} with shape {array.shape}")
        return upload(self.gpu, array)

    def to_host(self, array: Array, *, out: np.ndarray | None = None, blocking: bool = True) -> np.ndarray:
        if not self.owns(array):
            self.refuse("array", array)
        gpu, data = self.gpu, array._data
        locked = out is not None and pinned.is_pinned(out)
        if blocking:
            gpu.download("to_host", data.nbytes, pinned=locked)
            host = np.empty_like(data, order="C") if out is None else out
            np.copyto(host, data)
            return host
        if out is None or not locked:
            raise ValueError("to_host(blocking=False) needs out=, an array made by backend.pinned(...)")
        gpu.download("to_host", data.nbytes, pinned=True, blocking=False)
        gpu.deferred.append((out, data.copy()))
        return out

    def matmul(
        self, a: Array, b: Array, *, out: Array | None = None, transpose_a: bool = False, transpose_b: bool = False
    ) -> Any:
        self.require_home(a=a, b=b)
        if out is not None:
            self.require_home(out=out)
        check_product(a.shape, b.shape, transpose_a, transpose_b, None if out is None else out.shape)
        left, right = (a._data.T if transpose_a else a._data), (b._data.T if transpose_b else b._data)
        return backend_matmul(self.gpu, left, right, out)

    def synchronize(self) -> None:
        self.gpu.synchronize()

    def measure(self) -> AbstractContextManager[Receipt]:
        """A receipt with exact counts and modelled seconds. The device is idle when it begins and when it ends."""
        return measure(self.gpu)

    def clock(self) -> float:
        """Modelled seconds since this device was made."""
        return self.gpu.timeline.host

    def memory(self) -> Memory:
        return Memory(self.gpu.used, self.gpu.held, self.gpu.limit, self.gpu.peak)

    def allocate(self, nbytes: int) -> Lease | None:
        """A bare block of device memory, with `free()`; freeing it twice raises DoubleFree. None for 0 bytes."""
        check_bytes(nbytes)
        return self.gpu.allocate(nbytes)

    def release_memory(self) -> None:
        gc.collect()
        self.gpu.pool.release()

    def astype(self, dtype: str) -> Self:
        return type(self)(dtype=dtype, gpu=self.gpu)

    def pinned(self, host: Any) -> np.ndarray:
        return pinned.pinned(host)

    def stream(self) -> SimStream:
        return SimStream(self.gpu)

    def capture(self) -> AbstractContextManager[Graph]:
        return capture(self.gpu)

    def launch(
        self, name: str, arrays: tuple[Any, ...], action: Callable[..., object], *, seconds: float = 0.0
    ) -> None:
        """Queue a kernel of one's own: `action` gets the NumPy views of `arrays` and writes its results into them.

        seconds: what it costs the device, or 0 for reading and writing all the arrays once.
        """
        self.require_home(**{f"argument {position}": array for position, array in enumerate(arrays, 1)})
        gpu = self.gpu
        data = [array._data for array in arrays]

        def run() -> None:
            with quiet():
                action(*data)

        if gpu.graph is None:
            run()
        else:
            gpu.graph.actions.append(run)
        gpu.launch("raw_kernel", name, seconds or gpu.device.elementwise(sum(part.nbytes for part in data)))


@functools.lru_cache(maxsize=8)  # asked for at every step, by the loss
def _holding(gpu: Gpu, dtype: str) -> SimBackend:
    return SimBackend(dtype=dtype, gpu=gpu)


@functools.lru_cache(maxsize=8)
def _namespace(gpu: Gpu) -> Namespace:
    return Namespace(gpu)


@functools.cache
def _shared_gpu() -> Gpu:
    return Gpu("h200", 8 * 2**30, "default", 0)
