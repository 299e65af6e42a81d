"""What a training step pays for its memory, with four pools (lesson 08)."""

from __future__ import annotations

from typing import Any, NamedTuple

import ipywidgets
import numpy as np
from matplotlib.figure import Figure

from nnlab.backends.sim.backend import SimBackend
from nnlab.errors import UnknownName
from nnlab.lessons.widgets.explorer import Explorer

POOLS: dict[str, dict[str, Any]] = {
    "none": {"pool": "none"},
    "default": {"pool": "default"},
    "async, keeps nothing": {"pool": "async", "release_threshold": 0},
    "async, keeps 4 GiB": {"pool": "async", "release_threshold": 2**32},
}
SIZES = {f"{4**k * 4} KiB" if k < 4 else f"{4**k // 256} MiB": 4096 * 4**k for k in range(9)}  # of one array, in bytes
WAITS = {"at every step": 1, "at every tenth": 10, "never": 0}
STEPS, ARRAYS, KEPT = 20, 8, 2


class Run(NamedTuple):
    """asked: blocks that the driver gave, step by step. seconds: modelled, of one of the later steps."""

    asked: np.ndarray
    seconds: float


class Pools(Explorer):
    """Eight arrays a step, each made by one kernel: how often is the driver asked, and what does a step take?

    All 108 runs are made on the simulated GPU when the widget is built; no array holds any values.
    """

    def __init__(self) -> None:
        self.pool = ipywidgets.Dropdown(options=list(POOLS), value="none", description="pool")
        self.size = ipywidgets.SelectionSlider(
            options=list(SIZES), value="64 KiB", description="one array", continuous_update=False
        )
        self.wait = ipywidgets.Dropdown(options=list(WAITS), value="at every step", description="loss read")
        self.runs = {(p, s, w): simulate(POOLS[p], SIZES[s], WAITS[w]) for p in POOLS for s in SIZES for w in WAITS}
        super().__init__(
            {"pool": self.pool, "size": self.size, "wait": self.wait}, self._figure(),
            goal="find a pool that asks the driver at every step, then cure it in two ways.",
        )  # fmt: skip

    def update(self, pool: str, size: str, wait: str) -> str:
        """Show the run with these choices, and all four pools over the size."""
        if pool not in POOLS:
            raise UnknownName("pool", pool, POOLS)
        if wait not in WAITS:
            raise UnknownName("time to read the loss", wait, WAITS)
        if size not in SIZES:
            raise UnknownName("size", size, SIZES)
        run = self.runs[pool, size, wait]
        for bar, asked in zip(self.bars, run.asked, strict=True):
            bar.set_height(asked)
        for name, line in self.lines.items():
            line.set_ydata([1e6 * self.runs[name, each, wait].seconds for each in SIZES])
        self.point.set_data([SIZES[size]], [1e6 * run.seconds])
        early, late = int(run.asked[0]), int(run.asked[-10:].sum())
        return (
            f"{pool}, {ARRAYS} arrays of {size} a step, loss read {wait}: the driver is asked {early} times in the "
            f"first step and <b>{late}</b> times in the last ten; modelled <b>{1e6 * run.seconds:,.0f} us</b> a step"
        )

    def _figure(self) -> Figure:
        fig = Figure(figsize=(7.8, 3.2), dpi=80, layout="constrained")
        left, right = fig.subplots(1, 2)
        self.bars = left.bar(range(STEPS), [0.0] * STEPS, color="#56B4E9", edgecolor="black", linewidth=0.5)
        left.set(xlabel="step", ylabel="blocks asked of the driver", title="This run", ylim=(0, ARRAYS + 0.5))
        styles = zip(POOLS, ("#D55E00", "#0072B2", "#CC79A7", "#009E73"), ("-", "-", "--", ":"), strict=True)
        self.lines = {
            name: right.plot(list(SIZES.values()), [1.0] * len(SIZES), style, color=colour, label=name)[0]
            for name, colour, style in styles
        }
        (self.point,) = right.plot([], [], "o", color="none", markeredgecolor="black", markersize=12)
        right.set(xlabel="bytes of one array", ylabel="us a step, modelled", xscale="log", yscale="log", ylim=(50, 2e4))
        right.set_title("All pools")
        right.legend(fontsize=8)
        return fig


def simulate(options: dict[str, Any], size: int, wait_every: int) -> Run:
    """Twenty steps; each makes eight arrays, of which two live until its end and the others until the next one."""
    b = SimBackend(memory=2**33, **options)
    kernel = b.gpu.device.elementwise(3 * size)
    asked, seconds = [], []
    for step in range(STEPS):
        with b.measure() as receipt:
            kept = []
            for array in range(ARRAYS):
                made = b.xp.empty(size, dtype="uint8")
                b.launch("kernel", (), lambda: None, seconds=kernel)
                if array < KEPT:
                    kept.append(made)
                del made
            kept.clear()
            if wait_every and step % wait_every == 0:
                b.synchronize()
        asked.append(receipt.allocations or 0)
        seconds.append(receipt.seconds)
    return Run(np.array(asked), float(np.mean(seconds[-10:])))
