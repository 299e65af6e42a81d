"""`cuda`: what a kernel may use. The same names mean the card's own when the kernel is compiled."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

MATHS = (
    "abs",
    "ceil",
    "cos",
    "exp",
    "floor",
    "log",
    "log1p",
    "maximum",
    "minimum",
    "sin",
    "sqrt",
    "tanh",
)
INDICES = ("threadIdx", "blockIdx", "blockDim", "gridDim")
FUNCTIONS = ("grid", "gridsize", "syncthreads", "shared_memory", "atomic_add")
TYPES = ("float32", "float64", "int32", "int64")


class Index(NamedTuple):
    """A place or a size in up to three directions."""

    x: int
    y: int
    z: int


class Thread:
    """The thread that is being interpreted: its number in the launch, its place, and the block it belongs to."""

    __slots__ = ("block", "block_index", "number", "place")

    def __init__(self, number: int, place: Index, block_index: Index, block: Any) -> None:
        self.number, self.place, self.block_index, self.block = number, place, block_index, block


class Cuda:
    """The names a kernel may use.

    grid(1): this thread's number in the launch; grid(2), grid(3): its place in each direction. gridsize(1): how many
    threads there are. threadIdx, blockIdx, blockDim, gridDim with .x, .y, .z. syncthreads(): wait for all threads of
    the block. shared_memory(dtype, size): a 1-D array that the threads of a block share; size is a constant.
    atomic_add(array, index, value): add without a race. float32(v), float64(v), int32(v), int64(v) convert, and
    exp, log, log1p, sqrt, sin, cos, tanh, abs, floor, ceil, minimum, maximum calculate.

    On the card indices and literals like 3 are int32, a literal like 0.5 is float32, and a variable keeps the type it
    had first: begin a float64 sum with cuda.float64(0).
    """

    def __init__(self) -> None:
        self._thread: Thread | None = None
        for name in MATHS:
            setattr(self, name, getattr(np, name))
        for name in TYPES:
            setattr(self, name, getattr(np, name))

    @property
    def threadIdx(self) -> Index:
        return self._now().place

    @property
    def blockIdx(self) -> Index:
        return self._now().block_index

    @property
    def blockDim(self) -> Index:
        shape: Index = self._now().block.shape
        return shape

    @property
    def gridDim(self) -> Index:
        grid: Index = self._now().block.grid
        return grid

    def grid(self, directions: int) -> Any:
        """This thread's place in the whole launch: a number for 1, a tuple for 2 or 3 directions."""
        thread = self._now()
        blocks, sizes, places = thread.block_index, thread.block.shape, thread.place
        if directions == 1:
            return blocks.x * sizes.x + places.x
        return _first([b * s + t for b, s, t in zip(blocks, sizes, places, strict=True)], directions)

    def gridsize(self, directions: int) -> Any:
        """How many threads the launch has: a number for 1, a tuple for 2 or 3 directions."""
        block = self._now().block
        return _first([g * s for g, s in zip(block.grid, block.shape, strict=True)], directions)

    def shared_memory(self, dtype: Any, size: int) -> Any:
        """A 1-D array shared by the threads of this block, not set to anything."""
        frame = sys._getframe(1)
        return self._now().block.shared(frame.f_lasti, frame.f_lineno, dtype, size)

    def atomic_add(self, array: Any, index: Any, value: Any) -> Any:
        """Add `value` to `array[index]` as one operation; the value before it."""
        return array.atomic_add(index, value, sys._getframe(1).f_lineno)

    def syncthreads(self) -> None:
        """Wait until all threads of the block have come this far. Stands alone, as a line of the kernel itself."""
        self._now()
        raise SyntaxError("cuda.syncthreads() stands on a line of its own, in the kernel itself and not in a helper")

    def _now(self) -> Thread:
        if self._thread is None:
            raise RuntimeError("cuda.… works inside a kernel, launched with kernel[blocks, threads](...)")
        return self._thread


def _first(values: list[Any], directions: int) -> Any:
    if directions not in (1, 2, 3):
        raise ValueError(f"a launch has 1, 2 or 3 directions, not {directions}")
    return values[0] if directions == 1 else tuple(values[:directions])


cuda = Cuda()
