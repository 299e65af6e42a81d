"""Where arrays live and how they move."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnlab.backends.base import Array, Backend, Memory
from nnlab.backends.numpy_backend import NumpyBackend
from nnlab.backends.receipt import Receipt
from nnlab.backends.timing import Timing
from nnlab.errors import UnknownName

__all__ = ["Array", "Backend", "Memory", "NumpyBackend", "Receipt", "Timing", "backend", "backend_of", "home_of"]

NAMES = ("numpy",)


def backend(name: str, *, dtype: str = "float32", **options: Any) -> Backend:
    """The backend called `name`; floats on it are `dtype`. Raises UnknownName, BackendUnavailable."""
    if name == "numpy":
        return NumpyBackend(dtype=dtype, **options)
    raise UnknownName("backend", name, NAMES)


def backend_of(array: Array) -> Backend:
    """The backend whose home holds `array`; its dtype is the array's where that is a floating type."""
    if isinstance(array, np.ndarray | np.generic):
        return NumpyBackend(dtype="float64" if array.dtype == np.float64 else "float32")
    raise TypeError(f"{type(array).__name__} is not an array of any nnlab backend; make one with backend.asarray(...)")


def home_of(value: object) -> str:
    """Where a value lives, in words; what is no device array lives on the host."""
    try:
        return backend_of(value).home
    except TypeError:
        return "the host"
