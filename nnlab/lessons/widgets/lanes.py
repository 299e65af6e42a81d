"""Which lane sets the time, the host's or the device's (lesson 07)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import NamedTuple

import ipywidgets
import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from nnlab.backends import Backend, Event, backend
from nnlab.errors import UnknownName
from nnlab.lessons import cub_step
from nnlab.lessons.widgets.explorer import Explorer

ROWS = (400, 4000, 40000)
SUMS = {"sum over rows": cub_step.sum_rows, "product with ones": cub_step.product_rows}
READS = ("every step", "at the end")
STEPS, SIZES = 3, (2, 64, 64, 1)
HEIGHT = 0.6
LANES = {"launch": ("host", 1.0, "#0072B2", ""), "kernel": ("device", 0.0, "#009E73", "//")}
LANES["wait"] = ("host waits", 1.0, "#FFFFFF", "..")


class Run(NamedTuple):
    """Of all STEPS: modelled seconds, the share of them in which the device is busy, waits, and the timeline."""

    seconds: float
    busy: float
    waits: int
    events: list[Event]


class Lanes(Explorer):
    """Three steps of 2-64-64-1 on the simulated H200: rows, how columns are summed, how often the loss is read.

    All twelve runs are made when the widget is built.
    """

    def __init__(self) -> None:
        self.rows = ipywidgets.SelectionSlider(options=ROWS, description="rows", continuous_update=False)
        self.sums = ipywidgets.ToggleButtons(options=tuple(SUMS), description="bias slopes")
        self.read = ipywidgets.ToggleButtons(options=READS, description="loss read")
        b = backend("sim")
        self.runs = {(rows, *way): run for rows in ROWS for way, run in _runs(b, rows).items()}
        controls = {"rows": self.rows, "sums": self.sums, "read": self.read}
        goal = "find the rows from which the device is the busy one, and then make it idle again."
        super().__init__(controls, self._figure(), goal=goal)

    def update(self, rows: int, sums: str, read: str) -> str:
        """Show the run with these choices."""
        if rows not in ROWS:
            raise ValueError(f"rows: {ROWS}; not {rows}")
        for value, options in ((sums, SUMS), (read, READS)):
            if value not in options:
                raise UnknownName("choice", value, options)
        run = self.runs[rows, sums, read]
        for kind, bars in self.bars.items():
            bars.set_verts(_boxes((e for e in run.events if e.kind == kind), LANES[kind][1]))
        self.ax.set_xlim(0, 1e3 * run.seconds)
        lane = "device" if run.busy > 0.8 else "host"
        return (
            f"{rows:,} rows, {sums}, loss read {read}: {STEPS} steps in <b>{1e3 * run.seconds:.3g} ms</b> (modelled); "
            f"the device is busy {run.busy:.0%} of the time, {run.waits} waits: the <b>{lane}</b> sets the time"
        )

    def _figure(self) -> Figure:
        fig = Figure(figsize=(7.8, 2.8), dpi=80, layout="constrained")
        self.ax = fig.subplots()
        self.bars = {}
        for kind, (name, _, colour, hatch) in LANES.items():
            bars = PolyCollection([], facecolor=colour, hatch=hatch, edgecolor="black", linewidth=0.4, label=name)
            self.bars[kind] = bars
            self.ax.add_collection(bars)
        self.ax.set(ylim=(-0.5, 1.5), xlabel="modelled time in ms", yticks=[1, 0], yticklabels=["host", "device"])
        self.ax.grid(visible=False, axis="y")
        fig.legend(loc="outside upper center", ncols=3, fontsize=9)
        return fig


def _runs(b: Backend, rows: int) -> dict[tuple[str, str], Run]:
    """All ways at this number of rows; the first calls of kernels, and of the driver for memory, are made before."""
    points = np.linspace(-1, 1, 2 * rows).reshape(rows, 2)
    x, y, net = b.asarray(points), b.asarray(np.abs(points[:, :1])), cub_step.layers(b, SIZES)
    for column_sums in SUMS.values():
        cub_step.step(b, x, y, net, column_sums)
    found = {}
    for sums, read in product(SUMS, READS):
        with b.measure() as receipt:
            for _ in range(STEPS):
                loss = cub_step.step(b, x, y, net, SUMS[sums])
                if read == READS[0]:
                    float(loss)
            if read == READS[1]:
                float(loss)
        events = receipt.events or []
        busy = sum(e.end - e.start for e in events if e.lane == "device")  # one stream: kernels do not overlap
        found[sums, read] = Run(receipt.seconds, busy / receipt.seconds, receipt.waits or 0, events)
    return found


def _boxes(events: Iterable[Event], middle: float) -> list[np.ndarray]:
    low, high = middle - HEIGHT / 2, middle + HEIGHT / 2
    return [
        np.array([[a, low], [b, low], [b, high], [a, high]]) for a, b in ((1e3 * e.start, 1e3 * e.end) for e in events)
    ]
