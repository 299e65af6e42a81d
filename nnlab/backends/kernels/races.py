"""Races: two threads at one element, at least one of them writing, with nothing that puts them in order.

Threads of one block are put in order by a barrier alone; threads of different blocks by nothing at all. Which of them
comes first on a card is chance, so the result is chance too, even where it came out right today.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

MOST_RACES = 5
READ, WRITE, ATOMIC = "reads", "writes", "adds atomically to"


class Access(NamedTuple):
    """One thread at one element. phase: how many barriers the thread's block has passed."""

    kind: str
    thread: int
    block: int
    phase: int
    line: int


class Watch:
    """Remembers who was at which element, and notes each pair of lines that races, once."""

    def __init__(self) -> None:
        self.races: list[tuple[str, Access, Access]] = []
        self._seen: set[tuple[str, int, int]] = set()  # array, line, later line

    def note(self, cell: list[Access], access: Access, array: str, place: tuple[int, ...]) -> None:
        """`cell`: the accesses of this element so far, which is at `place` in `array`; `access` joins them."""
        for other in cell:
            if other.thread == access.thread or not _conflict(other.kind, access.kind):
                continue
            if other.block == access.block and other.phase != access.phase:
                continue
            lines = array, min(other.line, access.line), max(other.line, access.line)
            if lines not in self._seen and len(self.races) < MOST_RACES:
                self._seen.add(lines)
                shown = ", ".join(str(int(number)) for number in place)
                self.races.append((f"{array}[{shown}]", other, access))
            break
        _remember(cell, access)

    def told(self, name: str, text: Callable[[int], str]) -> list[str]:
        """The races in words; text(line) is the source."""
        return [_words(name, place, first, second, text) for place, first, second in self.races]


def _conflict(first: str, second: str) -> bool:
    if first == second:
        return first == WRITE
    return True


def _remember(cell: list[Access], access: Access) -> None:
    """Of each kind, the first access and the latest are enough: threads run one after another up to a barrier, and
    blocks one after another to their end."""
    alike = [a for a in cell if a.kind == access.kind]
    if not alike or (access.block, access.phase) != (alike[-1].block, alike[-1].phase):
        if len(alike) == 2:
            cell.remove(alike[1])
        cell.append(access)


def _words(name: str, place: str, first: Access, second: Access, text: Callable[[int], str]) -> str:
    told = f"kernel {name}: a race for {place}: {_who(first, text)}, and {_who(second, text)}, in no order. "
    if first.block != second.block:
        return told + "Blocks run in any order: give each its own elements, or use cuda.atomic_add"
    if first.kind == second.kind == WRITE or ATOMIC in (first.kind, second.kind):
        return told + "Give each thread an element of its own, or use cuda.atomic_add"
    return told + "Put cuda.syncthreads() between the two, or use cuda.atomic_add"


def _who(access: Access, text: Callable[[int], str]) -> str:
    where = f"line {access.line} ({text(access.line)})"
    return f"thread {access.thread} of block {access.block} {access.kind} it in {where}"
