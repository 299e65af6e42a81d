"""Where the GPU begins to win, over batch and width (lesson 06)."""

from __future__ import annotations

from collections.abc import Sequence

import ipywidgets
import numpy as np
from matplotlib.figure import Figure

from nnlab.lessons.crossover import crossing
from nnlab.lessons.widgets.explorer import Explorer


class Crossover(Explorer):
    """NumPy against a device, step by step, for the sizes that were timed.

    host, device: seconds a step, (len(widths), len(batches)), from `nnlab.lessons.crossover.seconds`. name: what the
    device's times are, "modelled" or "live".
    """

    def __init__(
        self, batches: Sequence[int], widths: Sequence[int], host: np.ndarray, device: np.ndarray, *, name: str
    ) -> None:
        self.batches, self.widths, self.host, self.device, self.name = batches, widths, host, device, name
        if host.shape != (len(widths), len(batches)) or device.shape != host.shape:
            raise ValueError(f"times of shape {host.shape} and {device.shape} for {len(widths)} x {len(batches)} sizes")
        self.batch, self.width = (
            ipywidgets.SelectionSlider(options=tuple(sizes), description=text, continuous_update=False)
            for sizes, text in ((batches, "batch"), (widths, "width"))
        )
        controls = {"batch": self.batch, "width": self.width}
        goal = "find, for each width, the smallest batch from which on the GPU wins."
        super().__init__(controls, self._figure(), goal=goal)

    def update(self, batch: int, width: int) -> str:
        """Show both homes at this width, and mark this batch."""
        if batch not in self.batches or width not in self.widths:
            raise ValueError(f"timed are batches {self.batches} and widths {self.widths}, not {batch} and {width}")
        row, column = list(self.widths).index(width), list(self.batches).index(batch)
        host, device = float(self.host[row, column]), float(self.device[row, column])
        self.numpy.set_data(self.batches, self.host[row])
        self.gpu.set_data(self.batches, self.device[row])
        self.here.set_data([batch, batch], [host, device])
        ratio = max(host, device) / min(host, device)
        winner = "the GPU" if device < host else "NumPy"
        start = crossing(self.batches, self.host[row], self.device[row])
        end = f"the GPU wins from batch {start} on" if start else "NumPy wins at the largest batch"
        return (
            f"batch {batch}, width {width}: NumPy {1e3 * host:.3g} ms, GPU {1e3 * device:.3g} ms ({self.name}): "
            f"<b>{winner}</b> × {ratio:.1f}; at this width {end}"
        )

    def _figure(self) -> Figure:
        fig = Figure(figsize=(7.0, 3.2), dpi=80, layout="constrained")
        ax = fig.subplots()
        (self.numpy,) = ax.plot([], [], "s-", color="#D55E00", label="NumPy, this machine")
        (self.gpu,) = ax.plot([], [], "o--", color="#0072B2", label=f"GPU, {self.name}")
        (self.here,) = ax.plot([], [], ":", marker="o", color="black", markerfacecolor="none", markersize=12)
        low, high = min(self.host.min(), self.device.min()), max(self.host.max(), self.device.max())
        ax.set(xlabel="batch (rows)", ylabel="seconds a step", xscale="log", yscale="log")
        ax.set(xlim=(self.batches[0] / 1.5, self.batches[-1] * 1.5), ylim=(low / 2, high * 2))
        ax.legend(loc="upper left")
        return fig
