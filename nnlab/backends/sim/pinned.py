"""Pinned (page-locked) host memory: an ordinary NumPy array, in memory that the device may read by itself."""

from __future__ import annotations

from typing import Any

import numpy as np


class PinnedMemory(bytearray):
    """The bytes behind a pinned array, by which it is known again."""


def pinned(host: Any) -> np.ndarray:
    """A copy of `host` in pinned memory."""
    source = np.asarray(host)
    if source.nbytes == 0:
        return source.copy()
    array = np.frombuffer(PinnedMemory(source.nbytes), source.dtype).reshape(source.shape)
    np.copyto(array, source)
    return array


def is_pinned(array: np.ndarray) -> bool:
    """Does the array, or the one it is a view of, lie in pinned memory?"""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    return isinstance(base, PinnedMemory)
