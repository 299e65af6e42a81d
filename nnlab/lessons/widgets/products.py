"""Which matrix products keep a card busy: the roofline of one product (lesson 10)."""

from __future__ import annotations

import ipywidgets
import numpy as np
from matplotlib.figure import Figure

from nnlab.backends.sim.device import load_device
from nnlab.lessons.widgets.explorer import Explorer

SIZES = tuple(2**k for k in range(15))  # 1 to 16,384


class Products(Explorer):
    """The time of a float32 product (rows, inner) × (inner, columns), modelled for an H200, and what bounds it.

    tried: the shapes so far, drawn under the two roofs: the rate of memory, and that of arithmetic.
    """

    def __init__(self) -> None:
        self.device = load_device("h200")
        self.rate = self.device.kernel["product_rate_float32"]
        self.memory = self.device.kernel["memory_rate"]
        self.rows, self.inner, self.columns = (
            ipywidgets.SelectionSlider(options=SIZES, value=value, description=name, continuous_update=False)
            for name, value in (("rows", 4096), ("inner", 64), ("columns", 1))
        )
        self.tried: list[tuple[float, float]] = []
        super().__init__(
            {"rows": self.rows, "inner": self.inner, "columns": self.columns}, self._figure(),
            goal="reach half of the card's rate with small squares; then see how near you come with one size at 64.",
        )  # fmt: skip

    def update(self, rows: int, inner: int, columns: int) -> str:
        """Put the product's point under the roofs."""
        for name, size in (("rows", rows), ("inner", inner), ("columns", columns)):
            if size not in SIZES:
                raise ValueError(f"{name}: {', '.join(map(str, SIZES))}; not {size}")
        operations = 2.0 * rows * inner * columns
        moved = 4.0 * (rows * inner + inner * columns + rows * columns)
        seconds = self.device.product(rows, inner, columns, 4)
        achieved = operations / seconds
        here = (operations / moved, achieved / 1e12)
        if here not in self.tried:
            self.tried.append(here)
        self.before.set_data(*zip(*self.tried, strict=True))
        self.point.set_data([here[0]], [here[1]])
        return (
            f"({rows} × {inner}) · ({inner} × {columns}): {operations:.3g} operations on {moved:.3g} bytes, modelled "
            f"{1e6 * seconds:,.1f} us: <b>{_percent(achieved / self.rate)}</b> of the card's rate"
        )

    def _figure(self) -> Figure:
        fig = Figure(figsize=(7.4, 3.2), dpi=80, layout="constrained")
        ax = fig.subplots()
        intensity = np.logspace(-1.2, 4, 200)
        roof = np.minimum(intensity * self.memory, self.rate) / 1e12
        ax.plot(intensity, roof, color="black", label="roofs: memory, then arithmetic")
        ax.axhline(self.rate / 2e12, color="#D55E00", linestyle="--", label="half of the rate")
        (self.before,) = ax.plot([], [], "o", color="#56B4E9", label="tried")
        (self.point,) = ax.plot([], [], "o", color="none", markeredgecolor="black", markersize=12)
        ax.set(xscale="log", yscale="log", xlabel="operations a byte", ylabel="10¹² operations a second")
        ax.set(ylim=(1e-6, 200), xlim=(0.06, 1e4))
        ax.legend(loc="lower right", fontsize=9)
        return fig


def _percent(share: float) -> str:
    if share < 1e-4:
        return "less than 0.01 %"
    return f"{100 * share:.0f} %" if share >= 0.01 else f"{100 * share:.2f} %"
