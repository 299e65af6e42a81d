"""Matrix products through a cuBLAS handle of our own.

CuPy refuses its cuBLAS calls while a stream records into a graph. cuBLAS itself can be recorded, if its workspace is
given beforehand, so `backend.matmul` calls the library that CuPy has loaded, with a handle and a workspace per thread
and device. cuBLAS thinks in columns: a row-major matrix is to it the transposed one. So for C = A B we ask it for
C' = B' A', which is the same memory, by handing over the operands in swapped order.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from nnlab.backends.base import Array
from nnlab.errors import BackendUnavailable

WORKSPACE_BYTES = 32 * 2**20  # what NVIDIA recommends for Hopper; other cards need less
_INT_MAX = 2**31 - 1
_GEMM = {"f": ("cublasSgemm_v2", ctypes.c_float), "d": ("cublasDgemm_v2", ctypes.c_double)}
_local = threading.local()


class Operand(NamedTuple):
    """A matrix as cuBLAS takes it: is it to be transposed, and the elements from one row (or column) to the next."""

    array: Array
    transposed: bool
    stride: int


class Handle:
    """A cuBLAS handle on one device, with a workspace for each stream it has worked on."""

    def __init__(self, cupy: Any) -> None:
        self.cupy, self.cublas = cupy, _load()
        self._handle = ctypes.c_void_p()
        _check(self.cublas.cublasCreate_v2(ctypes.byref(self._handle)), "cublasCreate")
        self._workspaces: dict[int, Any] = {}
        self._stream = -1
        # What every call needs again, made once: the library is called at each step of a training loop.
        self._calls = {
            char: (getattr(self.cublas, name), ctypes.byref(scalar(1.0)), ctypes.byref(scalar(0.0)), name)
            for char, (name, scalar) in _GEMM.items()
        }

    @contextmanager
    def recording(self, stream: int) -> Iterator[Any]:
        """Work on a stream that is about to record. Yields the workspace, which the graph must keep."""
        workspace = self._workspaces[stream] = new_workspace(self.cupy)
        self.use(stream)
        try:
            yield workspace
        finally:
            del self._workspaces[stream]
            self._stream = -1

    def use(self, stream: int) -> None:
        """Work on this stream from now on."""
        if stream != self._stream:
            workspace = self._workspaces.get(stream)
            if workspace is None:
                workspace = self._workspaces[stream] = new_workspace(self.cupy)
            _check(self.cublas.cublasSetStream_v2(self._handle, ctypes.c_void_p(stream)), "cublasSetStream")
            given = ctypes.c_void_p(workspace.ptr), ctypes.c_size_t(WORKSPACE_BYTES)
            _check(self.cublas.cublasSetWorkspace_v2(self._handle, *given), "cublasSetWorkspace")
            self._stream = stream

    def gemm(self, a: Operand, b: Operand, out: Operand) -> None:
        """out = a b, all row-major, of one type (float32 or float64)."""
        self.use(self.cupy.cuda.get_current_stream().ptr)
        call, one, zero, name = self._calls[out.array.dtype.char]
        rows, columns = out.array.shape
        status = call(
            self._handle,
            b.transposed,
            a.transposed,
            columns,
            rows,
            a.array.shape[0] if a.transposed else a.array.shape[1],
            one,
            b.array.data.ptr,
            b.stride,
            a.array.data.ptr,
            a.stride,
            zero,
            out.array.data.ptr,
            out.stride,
        )
        if status:
            _check(status, name)


def new_workspace(cupy: Any) -> Any:
    """Memory for cuBLAS, from the driver, so that it counts as no array's."""
    return cupy.cuda.memory.Memory(WORKSPACE_BYTES)


def handle(cupy: Any) -> Handle:
    """This thread's handle on the current device."""
    device = cupy.cuda.runtime.getDevice()
    handles: dict[int, Handle] = _local.__dict__.setdefault("handles", {})
    if device not in handles:
        handles[device] = Handle(cupy)
    return handles[device]


def matmul(cupy: Any, a: Array, b: Array, out: Array, transpose_a: bool, transpose_b: bool) -> None:
    """Write the product of two 2-D arrays of one type into `out`; the shapes have been checked.

    Other types than float32 and float64 go through CuPy, which cannot be recorded into a graph.
    """
    if out.dtype.char not in _GEMM or a.dtype != out.dtype or b.dtype != out.dtype:
        cupy.matmul(a.T if transpose_a else a, b.T if transpose_b else b, out=out)
        return
    if 0 in a.shape or 0 in b.shape:
        out.fill(0)
        return
    layout = _layout(out)
    if layout is None or layout[0] or _overlaps(cupy, out, a, b):
        target = Operand(cupy.empty(out.shape, out.dtype), False, out.shape[1])
    else:
        target = Operand(out, False, layout[1])
    handle(cupy).gemm(_operand(cupy, a, transpose_a), _operand(cupy, b, transpose_b), target)
    if target.array is not out:
        out[...] = target.array


def _operand(cupy: Any, matrix: Array, transpose: bool) -> Operand:
    """The matrix without a copy where its rows or its columns lie densely, else a dense copy (one launch)."""
    layout = _layout(matrix)
    if layout is None:
        matrix = cupy.ascontiguousarray(matrix)
        layout = False, matrix.shape[1]
    by_columns, stride = layout
    if max(*matrix.shape, stride) > _INT_MAX:
        raise ValueError(f"a matrix of shape {matrix.shape} is too large for cuBLAS's 32-bit sizes; multiply in parts")
    return Operand(matrix.T if by_columns else matrix, transpose != by_columns, stride)


def _layout(matrix: Array) -> tuple[bool, int] | None:
    """(does it lie by columns, elements from one row or column to the next); None for any other layout."""
    return _lies(matrix.shape, matrix.strides, matrix.itemsize)


@functools.lru_cache(maxsize=4096)  # a training loop asks for the same few shapes again and again
def _lies(shape: tuple[int, int], strides: tuple[int, int], itemsize: int) -> tuple[bool, int] | None:
    (rows, columns), (down, right) = shape, (s // itemsize for s in strides)
    if (right == 1 or columns == 1) and (down >= columns or rows == 1):
        return False, columns if rows == 1 else down
    if (down == 1 or rows == 1) and (right >= rows or columns == 1):
        return True, rows if columns == 1 else right
    return None


def _overlaps(cupy: Any, out: Array, *operands: Array) -> bool:
    memory = out.data.mem
    return any(memory is x.data.mem and cupy.may_share_memory(out, x) for x in operands)


@functools.cache
def _load() -> ctypes.CDLL:
    """The cuBLAS that CuPy uses, found the way CuPy finds it."""
    from cuda import pathfinder

    loaded = pathfinder.load_nvidia_dynamic_lib("cublas")
    library = ctypes.CDLL(loaded.abs_path or "cublas", handle=loaded._handle_uint)
    number, pointer = ctypes.c_int, ctypes.c_void_p
    for name, scalar in _GEMM.values():
        call = getattr(library, name)
        call.argtypes = [pointer, *[number] * 5, ctypes.POINTER(scalar), pointer, number, pointer, number]
        call.argtypes += [ctypes.POINTER(scalar), pointer, number]
    return library


def _check(status: int, call: str) -> None:
    if status != 0:
        raise BackendUnavailable(
            f"cuBLAS refused {call} with status {status}; one that cannot be initialised usually means that the "
            "card's memory is full or that the CuPy package does not fit the driver"
        )
