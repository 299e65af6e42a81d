"""What an epoch of the spam filter costs, choice by choice (lesson 05)."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import ipywidgets
from matplotlib.figure import Figure

from nnlab.backends import Receipt, backend
from nnlab.errors import UnknownName
from nnlab.lessons import ports
from nnlab.lessons.recorded import recording
from nnlab.lessons.widgets.explorer import Explorer

ROWS = (1, 10, 100, 1000, 3530)
CHOICES = {
    "sigmoid": ("with masks", "without masks"),
    "mails": ("up each epoch", "up once"),
    "loss": ("read each epoch", "not read"),
}
COUNTS = ("launches", "copies", "waits")


class Cost(NamedTuple):
    """Of one epoch on the simulated H200: modelled seconds, and counts."""

    seconds: float
    launches: int
    copies: int
    waits: int


class PortCost(Explorer):
    """Rows at a time, masks, uploads, reads: counts, and modelled seconds beside NumPy's recorded ones.

    All 40 epochs are counted when the widget is built: a step of the loop once, times the number of steps.
    """

    def __init__(self) -> None:
        self.rows = ipywidgets.SelectionSlider(
            options=ROWS, value=1, description="mails a step", continuous_update=False
        )
        self.sigmoid, self.mails, self.loss = (
            ipywidgets.ToggleButtons(options=options, description=name) for name, options in CHOICES.items()
        )
        self.costs = costs()
        self.numpy = recording("port-email")["milliseconds"]
        names = {"rows": self.rows, "sigmoid": self.sigmoid, "mails": self.mails, "loss": self.loss}
        goal = "under a millisecond an epoch with the loss still read, changing as little as you can."
        super().__init__(names, self._figure(), goal=goal)

    def update(self, rows: int, sigmoid: str, mails: str, loss: str) -> str:
        """Show the epoch with these choices."""
        if rows not in ROWS:
            raise ValueError(f"mails a step: {ROWS}; not {rows}")
        diary = []  # is it as the first port had it?
        for value, options in zip((sigmoid, mails, loss), CHOICES.values(), strict=True):
            if value not in options:
                raise UnknownName("choice", value, options)
            diary.append(value == options[0])
        cost = self.costs[rows, *diary]
        self.point.set_data([cost.seconds], [0.5])
        for bar, text, count in zip(self.bars, self.texts, cost[1:], strict=True):
            bar.set_width(max(count, 0.5))
            text.set_text(f" {count:,}")
            text.set_x(max(count, 0.5))
        times = 1e3 * cost.seconds / self.numpy["NumPy, whole batch"]
        return (
            f"an epoch: <b>{_shown(cost.seconds)}</b> modelled on an H200, {cost.launches:,} launches, "
            f"{cost.copies:,} copies, {cost.waits:,} waits; NumPy's whole batch × {times:,.{0 if times > 100 else 1}f}"
        )

    def _figure(self) -> Figure:
        fig = Figure(figsize=(7.6, 3.4), dpi=80, layout="constrained")
        top, bottom = fig.subplots(2, 1, height_ratios=[2, 3])
        for (name, milliseconds), height in zip(list(self.numpy.items())[:2], ("--", ":"), strict=True):
            top.axvline(milliseconds / 1e3, linestyle=height, color="black", linewidth=1.2, label=f"{name}, recorded")
        (self.point,) = top.plot([], [], "o", color="#D55E00", markersize=11, label="this port, modelled")
        top.set(xscale="log", xlim=(1e-4, 20), ylim=(0, 1), yticks=[], xlabel="seconds an epoch")
        fig.legend(loc="outside upper center", ncols=3, fontsize=9)
        self.bars: Any = bottom.barh(COUNTS, [1, 1, 1], color=["#0072B2", "#E69F00", "#999999"])
        self.texts = [bottom.text(1, i, "", va="center", fontsize=9) for i in range(3)]
        bottom.set(xscale="log", xlim=(0.5, 2e6), xlabel="a count, each epoch")
        bottom.invert_yaxis()
        return fig


def costs() -> dict[tuple[int, ...], Cost]:
    """Of every choice. The loop's steps cost the same, so an epoch is its first step and the others times one."""
    x, y = ports.mails()
    b = backend("sim")
    found: dict[tuple[int, ...], Cost] = {}
    for rows, masks, upload, read in product(ROWS, (True, False), (True, False), (True, False)):
        port = ports.Port(rows, masks, upload, read)
        more = -(-len(x) // rows) - 1
        cost = first = _cost(ports.receipt_of(b, port, x[:rows], y[:rows]))
        if more:
            both = _cost(ports.receipt_of(b, port, x[: 2 * rows], y[: 2 * rows]))
            counts = (one + more * (two - one) for one, two in zip(first[1:], both[1:], strict=True))
            cost = Cost(first.seconds + more * (both.seconds - first.seconds), *counts)
        found[rows, masks, upload, read] = cost
    return found


def _cost(receipt: Receipt) -> Cost:
    count = {name: value or 0 for name, value in receipt.counts.items()}
    return Cost(receipt.seconds, count["launches"], count["h2d_copies"] + count["d2h_copies"], count["waits"])


def _shown(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1e3 * seconds:.2f} ms"
