"""The receipt: what a run cost on a device. Data only; the backends fill it in."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import NamedTuple

COUNTS = (
    "launches",
    "h2d_copies",
    "h2d_bytes",
    "d2h_copies",
    "d2h_bytes",
    "syncs",
    "waits",
    "allocations",
    "pool_hits",
    "peak_bytes",
)


class Line(NamedTuple):
    """A line of the learner's code, and what the host spent there: counts, and seconds of its own time."""

    file: str
    number: int
    text: str
    launches: int = 0
    copies: int = 0
    waits: int = 0
    seconds: float = 0.0


class Event(NamedTuple):
    """One bar of the timeline.

    kind: on the "host" lane "launch", "h2d", "d2h", "wait", "allocate", "compile" (the first call of a kernel) or
    "capture" (recording into a graph); on the "device" lane "kernel", "h2d" or "d2h". name: the operation
    ("multiply", "matmul", "float()"). start, end: seconds since the receipt began. bytes: copied, or asked for.
    stream: 0 is the default one. line: (file, number) of the learner's code.
    """

    kind: str
    name: str
    lane: str
    start: float
    end: float
    bytes: int = 0
    stream: int = 0
    line: tuple[str, int] | None = None


@dataclass
class Receipt:
    """What a block of code asked of a device. None means *not available* here, never zero.

    launches: work queued on the device (kernels, fills, copies from device to device).
    h2d_*, d2h_*: copies host to device and device to host, and their bytes.
    syncs: explicit waits; waits: all times the host had to wait for the device, the implied ones too.
    allocations: blocks of memory asked of the driver; pool_hits: blocks the pool had ready.
    peak_bytes: most memory in use by arrays at once.
    seconds: from an idle device to an idle device, on the host's clock, or on the simulated one if `modelled`.
    events: the timeline; left_out counts those beyond the first 200,000.
    lines: the lines of the learner's code that cost the host anything, costliest first.
    Receipts subtract: the counts, seconds and lines of the difference; it has no timeline.
    """

    launches: int | None = 0
    h2d_copies: int | None = 0
    h2d_bytes: int | None = 0
    d2h_copies: int | None = 0
    d2h_bytes: int | None = 0
    syncs: int | None = 0
    waits: int | None = 0
    allocations: int | None = 0
    pool_hits: int | None = 0
    peak_bytes: int | None = 0
    seconds: float = 0.0
    modelled: bool = False
    home: str = "the host"
    events: list[Event] | None = field(default=None, repr=False)
    left_out: int = 0
    lines: list[Line] | None = field(default=None, repr=False)

    @property
    def counts(self) -> dict[str, int | None]:
        """The counts by name, in the order of the table."""
        return {name: getattr(self, name) for name in COUNTS}

    def by_operation(self) -> dict[str, int] | None:
        """How often each operation was launched, in order of first launch; None without a timeline."""
        if self.events is None:
            return None
        launched: dict[str, int] = {}
        for event in self.events:
            if event.kind == "launch":
                launched[event.name] = launched.get(event.name, 0) + 1
        return launched

    def costliest(self, n: int = 3) -> list[Line] | None:
        """The `n` lines of the learner's code that cost the host most time."""
        return None if self.lines is None else self.lines[:n]

    def __sub__(self, other: Receipt) -> Receipt:
        if not isinstance(other, Receipt):
            return NotImplemented
        difference = Receipt(
            seconds=self.seconds - other.seconds,
            modelled=self.modelled or other.modelled,
            home=self.home if self.home == other.home else f"{self.home} minus {other.home}",
            lines=_minus_lines(self.lines, other.lines),
        )
        for name, count in self.counts.items():
            setattr(difference, name, _minus(count, other.counts[name]))
        return difference

    def table(self) -> str:
        """The receipt as text: a row per count, the seconds, and the three costliest lines."""
        rows = [(name.replace("_", " "), _shown(name, count)) for name, count in self.counts.items()]
        rows.append(("seconds" + (", modelled" if self.modelled else ""), _time(self.seconds)))
        width = max(len(name) for name, _ in rows)
        text = [f"receipt of {self.home}", *(f"  {name:<{width}}  {value:>13}" for name, value in rows)]
        lines = self.costliest()
        if lines is None:
            text.append("  costliest lines: not available")
        elif lines:
            text.append("  costliest lines (the host's own time)")
            text += [
                f"  {_time(line.seconds):>9}  {line.launches} launches, {line.copies} copies, {line.waits} waits"
                f"  line {line.number}: {textwrap.shorten(line.text, 60, placeholder='…')}"
                for line in lines
            ]
        return "\n".join(text)

    def __repr__(self) -> str:
        return self.table()


def _minus(mine: int | None, theirs: int | None) -> int | None:
    return None if mine is None or theirs is None else mine - theirs


def _minus_lines(mine: list[Line] | None, theirs: list[Line] | None) -> list[Line] | None:
    if mine is None or theirs is None:
        return None
    theirs_by_place = {line[:3]: line for line in theirs}
    difference = [_minus_line(line, theirs_by_place.pop(line[:3], Line(*line[:3]))) for line in mine]
    difference += [_minus_line(Line(*line[:3]), line) for line in theirs_by_place.values()]
    return sorted(difference, key=lambda line: -line.seconds)


def _minus_line(mine: Line, theirs: Line) -> Line:
    return mine._replace(
        launches=mine.launches - theirs.launches,
        copies=mine.copies - theirs.copies,
        waits=mine.waits - theirs.waits,
        seconds=mine.seconds - theirs.seconds,
    )


def _shown(name: str, count: int | None) -> str:
    if count is None:
        return "not available"
    return f"{count:,} B" if name.endswith("bytes") else f"{count:,}"


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if abs(seconds) >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} us"
