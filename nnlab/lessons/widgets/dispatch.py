"""Where asking launch by launch, a graph and a loop kernel meet, and where they part (lesson 11)."""

from __future__ import annotations

import ipywidgets
import numpy as np
from matplotlib.figure import Figure

from nnlab.backends.sim.device import load_device
from nnlab.lessons.dispatch import Cost, costs
from nnlab.lessons.widgets.explorer import Explorer

ROWS = tuple(4**k for k in range(9))
WIDTHS = (16, 64, 256, 1024)
LAYERS = (1, 2, 3, 4)
METHODS = ("one by one", "graph", "loop kernel")
LEAST = 1e-2  # microseconds, where the bars begin
TOGETHER = 1.1


class Dispatch(Explorer):
    """A step of 784-width-…-width-10 on the modelled H200, by rows, width and hidden layers, in three ways.

    Every step is worked out when the widget is built.
    """

    def __init__(self) -> None:
        self.rows = _choice("rows", ROWS, 1)
        self.width = _choice("width", WIDTHS, 256)
        self.layers = _choice("hidden layers", LAYERS, 2)
        device = load_device("h200")
        self.costs = {
            (rows, width, layers): costs(device, (784, *[width] * layers, 10), rows)
            for rows in ROWS
            for width in WIDTHS
            for layers in LAYERS
        }
        super().__init__(
            {"rows": self.rows, "width": self.width, "layers": self.layers},
            self._figure(),
            goal="find the fewest rows at which one by one and graph take the same time. Then find the step in which "
            "the loop kernel is furthest ahead.",
        )

    def update(self, rows: int, width: int, layers: int) -> str:
        """Show the three ways for this step."""
        if (rows, width, layers) not in self.costs:
            raise ValueError(f"rows: {ROWS}, width: {WIDTHS}, hidden layers: {LAYERS}; not {rows}, {width}, {layers}")
        found = self.costs[rows, width, layers]
        said = []
        for place, method in enumerate(METHODS):
            cost = found[method]
            for bars, seconds in zip(self.bars, (cost.host, cost.device) if cost else (0.0, 0.0), strict=True):
                bars[place].set_width(max(1e6 * seconds - LEAST, 0.0))
            said.append(f"{method} {_described(cost)}")
        eager, graph, loop = (found[method] for method in METHODS)
        assert eager is not None
        assert graph is not None
        ratio = eager.seconds / (loop or graph).seconds
        verdict = f"the fastest is {_shown(ratio)} times ahead of one by one"
        if eager.seconds < TOGETHER * graph.seconds:
            verdict = "one by one and graph take <b>the same time</b>"
        network = f"784-{'-'.join([str(width)] * layers)}-10"
        return f"{rows:,} {'row' if rows == 1 else 'rows'}, {network}: {', '.join(said)}; {verdict}"

    def _figure(self) -> Figure:
        fig = Figure(figsize=(7.8, 2.9), dpi=80, layout="constrained")
        ax = fig.subplots()
        places = np.arange(len(METHODS))
        host = ax.barh(places - 0.2, 1.0, 0.36, left=LEAST, color="#0072B2", label="host: launches")
        device = ax.barh(
            places + 0.2, 1.0, 0.36, left=LEAST, color="#009E73", hatch="//", edgecolor="black", label="device: kernels"
        )
        self.bars = [list(host), list(device)]
        ax.set(xscale="log", xlim=(LEAST, 1e6), xlabel="modelled µs a step; the longer bar of the two counts")
        ax.set_yticks(places, METHODS)
        ax.set_ylim(len(METHODS) - 0.45, -0.55)
        ax.grid(visible=False, axis="y")
        fig.legend(loc="outside upper center", ncols=2, fontsize=9)
        return fig


def _described(cost: Cost | None) -> str:
    if cost is None:
        return "on one cluster does not fit (the kernel for the whole card is not drawn here)"
    return f"<b>{_shown(1e6 * cost.seconds)} µs</b> ({'host' if cost.host > cost.device else 'device'})"


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _choice(description: str, options: tuple[int, ...], value: int) -> ipywidgets.SelectionSlider:
    return ipywidgets.SelectionSlider(
        options=options, value=value, description=description,
        continuous_update=False, style={"description_width": "90px"}, layout=ipywidgets.Layout(width="360px"),
    )  # fmt: skip
