"""The timeline of a receipt: what the host did, what the device did, and when."""

from __future__ import annotations

import textwrap
from typing import NamedTuple

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from nnlab.backends.receipt import Event, Receipt
from nnlab.backends.sim.device import NOT_MODELLED


class Look(NamedTuple):
    """How a kind of event is drawn: with a colour, and with a pattern for those who do not see it."""

    label: str
    colour: str
    hatch: str


LOOKS = {
    "launch": Look("launch", "#0072B2", ""),
    "kernel": Look("kernel", "#009E73", "//"),
    "h2d": Look("copy to device", "#E69F00", "\\\\"),
    "d2h": Look("copy to host", "#D55E00", "xx"),
    "wait": Look("wait", "#FFFFFF", ".."),
    "allocate": Look("allocation", "#56B4E9", "++"),
    "compile": Look("first call", "#999999", "--"),
    "capture": Look("recording", "#CC79A7", "||"),
}
_UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6))
_HEIGHT = 0.62
_NAMED = 0.045  # a bar this wide, as a share of the axis, has room for its name
_MOST_BARS = 1000  # of one kind in one lane
_ARROWS = 60  # up to so many kernels are tied to their launches


def timeline(
    receipt: Receipt, *, start: float = 0.0, end: float | None = None, size: tuple[float, float] = (9.0, 3.4)
) -> Figure:
    """Two lanes of bars, host above and device below, with a lane for each stream where there are several.

    start, end: seconds since the receipt began; None goes to its end. Thin lines tie kernels to their launches.
    Raises ValueError for a receipt without a timeline (a difference, or a card without CUPTI).
    """
    if not receipt.events:
        raise ValueError("this receipt has no timeline: it is a difference, or nothing was asked of the device")
    last = receipt.seconds if end is None else end
    events = [event for event in receipt.events if event.end >= start and event.start <= last]
    name, unit = next((n, u) for n, u in _UNITS if last - start >= u or u == _UNITS[-1][1])
    streams = sorted({event.stream for event in events if event.lane == "device"})
    heights = {("host", 0): len(streams) or 1}
    heights |= {("device", stream): len(streams) - 1 - i for i, stream in enumerate(streams)}

    fig, ax = plt.subplots(figsize=size)
    for kind, look in LOOKS.items():
        for lane, height in heights.items():
            mine = [event for event in events if event.kind == kind and _lane(event) == lane]
            bars = _merged([(event.start / unit, (event.end - event.start) / unit) for event in mine])
            thin = 0.3 if len(bars) > 200 else 0.6
            ax.broken_barh(
                bars,
                (height - _HEIGHT / 2, _HEIGHT),
                facecolor=look.colour,
                hatch=look.hatch,
                edgecolor="black",
                linewidth=thin,
            )
    _tie(ax, events, heights, unit)
    _name(ax, events, heights, unit, (last - start) / unit)
    names = ["host", *(["device"] if len(streams) < 2 else [f"device,\nstream {stream}" for stream in streams])]
    ax.set_yticks(list(heights.values())[: len(names)], names)
    ax.set(xlim=(start / unit, last / unit), ylim=(-0.5, max(heights.values()) + 0.5))
    ax.set_xlabel(f"{'modelled ' if receipt.modelled else ''}time in {name}, {receipt.home}")
    ax.grid(visible=False, axis="y")
    if receipt.left_out or len(events) > _MOST_BARS * len(heights):
        shown = f"the first {len(receipt.events):,} events; " if receipt.left_out else ""
        ax.set_title(f"({shown}too dense to tell apart: draw a part of it with start= and end=)", fontsize=9)
    used = [look for kind, look in LOOKS.items() if any(event.kind == kind for event in events)]
    handles = [Patch(facecolor=c, hatch=h, edgecolor="black", linewidth=0.6, label=label) for label, c, h in used]
    fig.legend(handles=handles, loc="outside upper center", ncols=len(handles), fontsize=9, handlelength=2.2)
    if receipt.modelled:
        fig.supxlabel(textwrap.fill(f"Modelled, not measured. {NOT_MODELLED}", 120), fontsize=8, color="#444444")
    return fig


def timeline_words(receipt: Receipt) -> str:
    """The timeline in words, for the text alternative: who was busy how much of the time, and what it waited for."""
    events, total = receipt.events or [], receipt.seconds or 1.0
    device = _covered([event for event in events if event.lane == "device"])
    waits = [event for event in events if event.kind == "wait"]
    waited = sum(event.end - event.start for event in waits)
    kernels = sum(event.kind == "kernel" for event in events)
    copies = sum(event.lane == "device" and event.kind in ("h2d", "d2h") for event in events)
    text = f"Two lanes over {_shown(total)}: {kernels} kernels and {copies} copies keep the device busy "
    text += f"{100 * device / total:.0f} % of the time; the host waits {100 * waited / total:.0f} % of it"
    names = list(dict.fromkeys(event.name for event in waits))
    return text + (f", in {', '.join(names[:4])}." if names else ".")


def _merged(bars: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Bars (start, width); of thousands, those that no eye can tell apart are made one."""
    if len(bars) <= _MOST_BARS:
        return bars
    bars = sorted(bars)
    apart = (bars[-1][0] + bars[-1][1] - bars[0][0]) / _MOST_BARS
    merged = bars[:1]
    for start, width in bars[1:]:
        first, reached = merged[-1][0], sum(merged[-1])
        if start - reached < apart and start + width - first < 2 * apart:
            merged[-1] = (first, max(reached, start + width) - first)
        else:
            merged.append((start, width))
    return merged


def _lane(event: Event) -> tuple[str, int]:
    return (event.lane, event.stream) if event.lane == "device" else ("host", 0)


def _tie(ax: Axes, events: list[Event], heights: dict[tuple[str, int], int], unit: float) -> None:
    """Tie each kernel to the launch that asked for it: the n-th of a stream to the n-th."""
    kernels = [event for event in events if event.kind == "kernel"]
    launches = [event for event in events if event.kind == "launch" and not event.name.startswith("graph")]
    if len(kernels) != len(launches) or len(kernels) > _ARROWS:
        return
    for launch, kernel in zip(launches, kernels, strict=True):
        below, above = heights[_lane(kernel)] + _HEIGHT / 2, heights["host", 0] - _HEIGHT / 2
        ax.plot([launch.end / unit, kernel.start / unit], [above, below], color="#777777", linewidth=0.7)


def _name(ax: Axes, events: list[Event], heights: dict[tuple[str, int], int], unit: float, width: float) -> None:
    for event in events:
        wide = (event.end - event.start) / unit
        if wide >= _NAMED * width:
            room = max(3, int(wide / width * 125))
            text = event.name if len(event.name) <= room else event.name[: room - 1] + "…"
            place = (event.start + event.end) / 2 / unit
            ax.text(place, heights[_lane(event)], text, ha="center", va="center", fontsize=8, bbox=_PAPER)


_PAPER = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.0}


def _covered(events: list[Event]) -> float:
    """Seconds in which at least one of the events runs."""
    covered, reached = 0.0, 0.0
    for event in sorted(events, key=lambda event: event.start):
        covered += max(0.0, event.end - max(event.start, reached))
        reached = max(reached, event.end)
    return covered


def _shown(seconds: float) -> str:
    name, unit = next((n, u) for n, u in _UNITS if seconds >= u or u == _UNITS[-1][1])
    return f"{seconds / unit:.3g} {name}"
