"""A real NVIDIA GPU as a home for arrays, through CuPy.

The cupy_*.py files are the only ones that import CuPy, and only when this backend is asked for.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import numpy as np

from nnlab.backends import cupy_blas
from nnlab.backends.base import Array, Backend, Memory, check_bytes, float_dtype
from nnlab.backends.cupy_graph import CupyGraph, capture, graphs, refuse_in_capture
from nnlab.backends.cupy_import import card_name, check_process, load_cupy
from nnlab.backends.cupy_measure import PAGEABLE_WAITS_ABOVE, measure, meters, upload
from nnlab.backends.cupy_pools import Lease, choose_pool, current_pool
from nnlab.backends.cupy_stream import CupyStream
from nnlab.backends.receipt import Receipt
from nnlab.backends.shapes import check_product


class CupyBackend(Backend):
    """CuPy arrays on the current CUDA device.

    pool: "default" (CuPy's), "none" or "async" (the driver's; release_threshold in bytes is what it may keep at a
    synchronize). memory: bytes that arrays may use. Both belong to the card: the last backend that names one sets it.
    Raises BackendUnavailable, with the reason and the cure, where CuPy cannot work.
    """

    name = "cupy"

    def __init__(
        self, *, dtype: str = "float32", pool: str | None = None, memory: int | None = None, release_threshold: int = 0
    ) -> None:
        super().__init__(dtype=dtype)
        self.xp = load_cupy()
        self.device = int(self.xp.cuda.runtime.getDevice())
        choose_pool(self.xp, pool, memory, release_threshold)

    @classmethod
    def holding(cls, array: Array) -> CupyBackend:
        """The backend of the card that holds `array`, in the array's type where that is a floating one."""
        return _holder(int(array.device.id), float_dtype(array))

    @property
    def home(self) -> str:
        return f"GPU {self.device} ({card_name(self.xp, self.device)})"

    def owns(self, array: object) -> bool:
        return isinstance(array, self.xp.ndarray) and int(array.device.id) == self.device

    def asarray(self, host: Any, *, dtype: str | None = None) -> Array:
        check_process()
        if self.owns(host):
            wanted = dtype or (self.dtype if host.dtype.kind == "f" else host.dtype)
            return host.astype(wanted, copy=False)
        if type(host).__module__.split(".")[0] in ("cupy", "nnlab"):
            self.refuse("array", host)
        array = np.asarray(host)
        array = array.astype(dtype or (self.dtype if array.dtype.kind == "f" else array.dtype), copy=False)
        if array.dtype.kind not in "fiub":
            raise TypeError(f"a GPU array holds numbers; this is {array.dtype} with shape {array.shape}")
        refuse_in_capture(self.xp, "asarray, a copy from the host,", "upload before recording, into a fixed buffer")
        start = time.perf_counter()
        with upload():
            if array.ndim:
                moved = self.xp.asarray(array, order="C")
            else:  # CuPy fills a single number in by a kernel; through set() every upload is one copy
                moved = self.xp.empty((), array.dtype)
                moved.set(array)
        held = array.nbytes > PAGEABLE_WAITS_ABOVE and not self._is_pinned(array)
        for meter in meters if array.size else ():
            meter.copied("h2d", "asarray", array.nbytes, start, held=held)
        return moved

    def to_host(self, array: Array, *, out: np.ndarray | None = None, blocking: bool = True) -> np.ndarray:
        check_process()
        self.require_home(array=array)
        refuse_in_capture(self.xp, "to_host, a copy to the host,", "read the array after graph.replay()")
        if not blocking and (out is None or not self._is_pinned(out)):
            raise ValueError("to_host(blocking=False) needs out= in page-locked memory: out = backend.pinned(...)")
        start = time.perf_counter()
        copied: np.ndarray = array.get(out=out, blocking=blocking)
        for meter in meters if array.size else ():
            meter.copied("d2h", "to_host", array.nbytes, start)
        return copied

    def matmul(
        self, a: Array, b: Array, *, out: Array | None = None, transpose_a: bool = False, transpose_b: bool = False
    ) -> Array:
        check_process()
        self.require_home(a=a, b=b)
        given = None
        if out is not None:
            self.require_home(out=out)
            given = out.shape
        shape = check_product(a.shape, b.shape, transpose_a, transpose_b, given)
        if out is None:
            out = self.xp.empty(shape, a.dtype if a.dtype == b.dtype else self.xp.result_type(a, b))
        cupy_blas.matmul(self.xp, a, b, out, transpose_a, transpose_b)
        return out

    def synchronize(self) -> None:
        check_process()
        refuse_in_capture(self.xp, "synchronize, a wait for the device,", "wait after graph.replay()")
        start = time.perf_counter()
        self.wait()
        for meter in meters:
            meter.waited(start)

    def wait(self) -> None:
        """Wait for the device without booking it: for measurements, whose own waits are no cost of the code."""
        self.xp.cuda.Device(self.device).synchronize()

    def measure(self) -> AbstractContextManager[Receipt]:
        check_process()
        return measure(self)

    def memory(self) -> Memory:
        check_process()
        mine = current_pool().memory()
        held = sum(int(graph.pool.total_bytes()) for graph in graphs)
        return Memory(mine.used + held, mine.held + held, mine.limit, max(mine.peak, mine.used + held))

    def allocate(self, nbytes: int) -> Lease:
        """A bare block of device memory, with `free()`; freeing it twice raises DoubleFree."""
        check_process()
        check_bytes(nbytes)
        return Lease(current_pool().allocate(nbytes), nbytes)

    def release_memory(self) -> None:
        check_process()
        gc.collect()  # first: a block that garbage still holds cannot be given back
        current_pool().release()

    def astype(self, dtype: str) -> CupyBackend:
        return CupyBackend(dtype=dtype)

    def pinned(self, host: Any) -> np.ndarray:
        check_process()
        import cupyx

        source = np.asarray(host)
        copy: np.ndarray = cupyx.empty_pinned(source.shape, source.dtype)
        copy[...] = source
        return copy

    def stream(self) -> CupyStream:
        check_process()
        return CupyStream(self.xp)

    def capture(self) -> AbstractContextManager[CupyGraph]:
        check_process()
        return capture(self.xp)

    def kernel(self, function: Callable[..., None]) -> Any:
        check_process()
        from nnlab.backends.cupy_kernels import JitKernel

        return JitKernel(self, function)

    def raw_kernel(self, source: str, name: str, *, reference: Callable[..., None]) -> Any:
        check_process()
        from nnlab.backends.cupy_kernels import CudaKernel

        return CudaKernel(self, source, name, reference)

    def _is_pinned(self, host: np.ndarray) -> bool:
        runtime = self.xp.cuda.runtime
        return bool(runtime.pointerGetAttributes(host.ctypes.data).type == runtime.cudaMemoryTypeHost)


@cache  # asked for at every operation of a training step
def _holder(device: int, dtype: str) -> CupyBackend:
    with load_cupy().cuda.Device(device):
        return CupyBackend(dtype=dtype)
