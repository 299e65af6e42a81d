"""Arrays as a kernel sees them: single elements, inside the bounds, every access seen."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from nnlab.backends.kernels.namespace import cuda
from nnlab.backends.kernels.races import ATOMIC, READ, WRITE, Access

_WHOLE = (int, np.integer)


class Watched:
    """An array, or a row of one. `x[i]` and `x[i, j]` read and write; outside the bounds they raise IndexError."""

    __slots__ = ("_address", "_data", "_name", "_prefix", "_run", "_shared", "shape", "size")

    def __init__(self, run: Any, name: str, data: np.ndarray, *, shared: bool = False, prefix: Any = ()) -> None:
        self._run, self._name, self._data, self._shared, self._prefix = run, name, data, shared, prefix
        self._address = data.__array_interface__["data"][0]
        self.shape: tuple[int, ...] = data.shape[len(prefix) :]
        self.size = math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        place = self._place(index, READ)
        if len(place) < self._data.ndim:
            return Watched(self._run, self._name, self._data, shared=self._shared, prefix=place)
        self._saw(READ, place, sys._getframe(1).f_lineno)
        return self._data[place]

    def __setitem__(self, index: Any, value: Any) -> None:
        place = self._place(index, WRITE)
        if len(place) < self._data.ndim:
            raise TypeError(
                f"{self._name} has {self._data.ndim} axes; a kernel writes one element, as {self._name}[i, j]"
            )
        self._fits(value)
        self._saw(WRITE, place, sys._getframe(1).f_lineno)
        self._data[place] = value

    def __iter__(self) -> Any:
        raise TypeError(f"a kernel walks through {self._name} by number: for i in range({self._name}.size)")

    def atomic_add(self, index: Any, value: Any, line: int) -> Any:
        """Add to one element; the value before it."""
        place = self._place(index, ATOMIC)
        if len(place) < self._data.ndim:
            raise TypeError(f"cuda.atomic_add adds to one element of {self._name}, which has {self._data.ndim} axes")
        self._fits(value)
        self._saw(ATOMIC, place, line)
        before = self._data[place]
        self._data[place] = before + value
        return before

    def _place(self, index: Any, kind: str) -> tuple[int, ...]:
        """The whole index, checked. Raises IndexError, TypeError."""
        given = index if isinstance(index, tuple) else (index,)
        place: tuple[Any, ...] = self._prefix + given
        if len(place) > self._data.ndim:
            raise IndexError(f"{self._name} has {self._data.ndim} axes, and {len(place)} indices were given")
        for axis, number in enumerate(given, len(self._prefix)):
            if not isinstance(number, _WHOLE) or isinstance(number, bool):
                raise TypeError(f"{self._name}[{index}]: a kernel takes one element by whole numbers, not {number!r}")
            if not 0 <= number < self._data.shape[axis]:
                self._outside(place, axis, kind)
        return place

    def _outside(self, place: tuple[Any, ...], axis: int, kind: str) -> None:
        thread = cuda._now()
        size = self._data.shape[axis]
        shown = ", ".join(str(int(number)) for number in place)
        along = f"axis {axis} of " if self._data.ndim > 1 else ""
        line = sys._getframe(3 if kind != ATOMIC else 4).f_lineno
        raise IndexError(
            f"kernel {self._run.name}, line {line} ({self._run.text(line)}): thread {thread.number} of block "
            f"{thread.block.number} {kind} {self._name}[{shown}], but {along}{self._name} has {size} elements, 0 to "
            f"{size - 1}. A card does not check this: guard the access with an `if`"
        )

    def _fits(self, value: Any) -> None:
        """A card refuses to store a fraction in an integer array; so does this."""
        kind = value.dtype.kind if isinstance(value, np.generic) else ("f" if isinstance(value, float) else "i")
        if kind == "f" and self._data.dtype.kind in "iub":
            raise TypeError(
                f"{self._name} holds {self._data.dtype}, and {value!r} is a float: convert it, as in cuda.int32(v)"
            )

    def _saw(self, kind: str, place: tuple[int, ...], line: int) -> None:
        run, thread = self._run, cuda._now()
        block = thread.block
        address = self._address
        for number, stride in zip(place, self._data.strides, strict=True):
            address += int(number) * stride
        access = Access(kind, thread.number, block.number, block.phase, line)
        cells = block.cells if self._shared else run.cells
        cell = cells.get(address)
        if cell is None:
            cells[address] = [access]
        else:
            run.watch.note(cell, access, self._name, place)
        run.count(kind, thread.number, self._shared)
