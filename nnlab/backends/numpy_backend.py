"""The host as a home for arrays: NumPy, with nothing to launch and nothing to copy."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import psutil

from nnlab.backends.base import Array, Backend, Memory, float_dtype
from nnlab.backends.receipt import Receipt
from nnlab.backends.shapes import check_product


class NumpyBackend(Backend):
    """NumPy arrays on the host; everything is done when a call returns."""

    name = "numpy"
    xp = np

    @classmethod
    def holding(cls, array: Array) -> NumpyBackend:
        return cls(dtype=float_dtype(array))

    @property
    def home(self) -> str:
        return "the host"

    @property
    def is_host(self) -> bool:
        return True

    def owns(self, array: object) -> bool:
        return isinstance(array, np.ndarray)

    def asarray(self, host: Any, *, dtype: str | None = None) -> np.ndarray:
        if not isinstance(host, np.ndarray) and _is_device_array(host):
            self.refuse("array", host)
        array = np.asarray(host)
        if dtype is not None:
            return array.astype(dtype, copy=False)
        if array.dtype.kind not in "fiub":
            raise TypeError(f"an array of a backend holds numbers; this is {array.dtype} with shape {array.shape}")
        return array.astype(self.dtype, copy=False) if array.dtype.kind == "f" else array

    def to_host(self, array: Array, *, out: np.ndarray | None = None, blocking: bool = True) -> np.ndarray:
        if _is_device_array(array):
            self.refuse("array", array)
        if out is None:
            return np.asarray(array)
        np.copyto(out, array)
        return out

    def matmul(
        self, a: Array, b: Array, *, out: Array | None = None, transpose_a: bool = False, transpose_b: bool = False
    ) -> np.ndarray:
        self.require_home(a=a, b=b)
        check_product(a.shape, b.shape, transpose_a, transpose_b, None if out is None else out.shape)
        product: np.ndarray = np.matmul(a.T if transpose_a else a, b.T if transpose_b else b, out=out)
        return product

    def synchronize(self) -> None:
        """Nothing to wait for: NumPy returns when the work is done."""

    @contextmanager
    def measure(self) -> Iterator[Receipt]:
        """A receipt of zeros and the seconds that passed: the host launches nothing and copies nothing."""
        receipt, start = Receipt(events=[], lines=[]), time.perf_counter()
        try:
            yield receipt
        finally:
            receipt.seconds = time.perf_counter() - start

    def memory(self) -> Memory:
        """Bytes of this process: in memory now (used and held alike), the machine's memory, the highest so far."""
        info = psutil.Process().memory_info()
        peak = getattr(info, "peak_wset", None) or _peak_rss() or info.rss
        return Memory(info.rss, info.rss, psutil.virtual_memory().total, max(peak, info.rss))

    def release_memory(self) -> None:
        gc.collect()

    def launch(
        self, name: str, arrays: tuple[Array, ...], action: Callable[..., object], *, seconds: float = 0.0
    ) -> None:
        self.require_home(**{f"argument {position}": array for position, array in enumerate(arrays, 1)})
        action(*arrays)

    def astype(self, dtype: str) -> NumpyBackend:
        return NumpyBackend(dtype=dtype)


def _is_device_array(value: object) -> bool:
    """Arrays of other homes announce themselves by refusing NumPy's conversion; lists and numbers do not."""
    return type(value).__module__.split(".")[0] in ("cupy", "nnlab")


def _peak_rss() -> int | None:
    """The highest resident size so far in bytes, where the system keeps it (not on Windows)."""
    try:
        import resource
        import sys
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
