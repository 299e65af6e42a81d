"""Which bound holds each way of the staircase, and which way wins, on other networks and cards (lesson 16)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import ipywidgets
import numpy as np
from matplotlib.figure import Figure

from nnlab.lessons import climb
from nnlab.lessons.climb_costs import MACHINES, Cost, cost
from nnlab.lessons.recorded import recording
from nnlab.lessons.widgets.explorer import Explorer

WIDTHS = (8, 16, 32, 64, 128)
SIDES = (16, 32, 64, 128, 200, 512, 1024)
CARDS = {machine.title: name for name, machine in MACHINES.items()}
WAYS = climb.DEVICE[3:]  # those without an obvious fault
LABELS = ("NumPy, float32", *(way.label for way in WAYS))
BOUNDS = {"launches": ("o", "#0072B2"), "memory": ("s", "#E69F00"), "arithmetic": ("^", "#D55E00")}
CALL = 1e-6  # seconds of the host for one call of NumPy, roughly; the arithmetic is scaled from the recorded step
EXPLAINS = 6  # a bound is named where the step takes less than so many times as long; above, it is not what holds it
LEAST, MOST = 1.0, 3e7  # microseconds, where the axis begins and ends


class Climb(Explorer):
    """A step of pyramid(width) on side x side pixels, in six ways, on a modelled card.

    Every step is worked out when the widget is built. Of NumPy only the time is known, scaled by pixels and weights.
    """

    def __init__(self) -> None:
        self.width = _slider("width", WIDTHS, 64)
        self.side = _slider("side, pixels", SIDES, 200)
        self.card = ipywidgets.ToggleButtons(options=tuple(CARDS), description="card", value="H200")
        recorded = recording("staircase-h200")
        rows, parameters = int(recorded["rows"]), _parameters(recorded["sizes"])
        self.numpy = 1e-6 * float(np.median(recorded["ways"][LABELS[0]]["us"])) / (rows * parameters)
        self.costs = {
            (width, side, card): [cost(way, name, sizes(width), side * side) for way in WAYS]
            for width in WIDTHS
            for side in SIDES
            for card, name in CARDS.items()
        }
        super().__init__(
            {"width": self.width, "side": self.side, "card": self.card},
            self._figure(),
            goal="find the largest picture on which NumPy beats sums as products, the step asked launch by launch. "
            "Then find a network that the graph trains fastest, on each card, and say which bound holds it.",
        )

    def update(self, width: int, side: int, card: str) -> str:
        """Show the six ways for this network, picture and card."""
        if (width, side, card) not in self.costs:
            raise ValueError(f"width: {WIDTHS}, side: {SIDES}, card: {tuple(CARDS)}; not {width}, {side}, {card}")
        found = self.costs[width, side, card]
        host = 111 * CALL + self.numpy * side * side * _parameters(sizes(width))
        seconds = [host, *(None if one is None else one.seconds for one in found)]
        for bar, took in zip(self.bars, seconds, strict=True):
            bar.set_width(0.0 if took is None else max(1e6 * took - LEAST, 0.0))
        for name, line in self.marks.items():
            line.set_data(
                [np.nan if one is None else max(1e6 * one.bounds[name], LEAST) for one in found],
                np.arange(1, len(LABELS)),
            )
        best = min((took, place) for place, took in enumerate(seconds) if took is not None)[1]
        said = [f"{LABELS[0]} {_shown(host)}"]
        said += [f"{label} {_described(one)}" for label, one in zip(LABELS[1:], found, strict=True)]
        said[best] = f"<b>{said[best]}</b>"
        asked = found[0]
        assert asked is not None
        beats = f"NumPy beats {LABELS[1]}" if host < asked.seconds else "the card beats NumPy"
        return (
            f"pyramid({width}), {side} × {side}, {card}: {'; '.join(said)}. "
            f"<b>{LABELS[best]}</b> is the fastest; {beats}"
        )

    def _figure(self) -> Figure:
        fig = Figure(figsize=(7.6, 3.2), dpi=80, layout="constrained")
        ax = fig.subplots()
        self.bars = list(ax.barh(range(len(LABELS)), 1.0, 0.6, left=LEAST, color="#cccccc", edgecolor="black"))
        self.marks = {
            name: ax.plot(
                [], [], marker, color=colour, markersize=9, markeredgecolor="black", label=f"least, by {name}"
            )[0]
            for name, (marker, colour) in BOUNDS.items()
        }
        ax.set(xscale="log", xlim=(LEAST * 0.8, MOST), xlabel="modelled µs a step (bars), and its three bounds")
        ax.set_yticks(range(len(LABELS)), LABELS)
        ax.set_ylim(len(LABELS) - 0.4, -0.6)
        ax.grid(visible=False, axis="y")
        fig.legend(loc="outside upper center", ncols=3, fontsize=9)
        return fig


def sizes(width: int) -> tuple[int, ...]:
    """pyramid(width)."""
    half = width // 2
    return (2, width, width, 2 * width, width, half, half, half, 1)


def _parameters(sizes: Sequence[int]) -> int:
    return sum((m + 1) * n for m, n in pairwise(sizes))


def _described(one: Cost | None) -> str:
    if one is None:
        return "does not fit its tile kernel (others are not drawn)"
    explains = one.seconds < EXPLAINS * one.bounds[one.rules]
    return _shown(one.seconds) + (f" ({one.rules})" if explains else "")


def _shown(seconds: float) -> str:
    us = 1e6 * seconds
    return f"{us:,.0f} µs" if us >= 100 else f"{us:.3g} µs"


def _slider(description: str, options: tuple[int, ...], value: int) -> ipywidgets.SelectionSlider:
    return ipywidgets.SelectionSlider(
        options=options, value=value, description=description,
        continuous_update=False, style={"description_width": "90px"}, layout=ipywidgets.Layout(width="360px"),
    )  # fmt: skip
