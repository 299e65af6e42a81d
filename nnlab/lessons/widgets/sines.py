"""Frequency and width of a SIREN, over recorded runs (lesson 15)."""

from __future__ import annotations

from typing import Any

import ipywidgets
import numpy as np
from matplotlib.figure import Figure

from nnlab.lessons.recorded import recording
from nnlab.lessons.recorded.thumbnails import decode
from nnlab.lessons.widgets.explorer import Explorer

TOLD = (4, 50)  # dB that the figure shows; what is above stands in the numbers


class Sines(Explorer):
    """Runs of the recording `siren-sweep` on the lion cub: PSNR on the trained pixels, and between them."""

    def __init__(self) -> None:
        self.record = recording("siren-sweep")
        self.runs = {(run["omega_0"], run["width"]): run for run in self.record["runs"]}
        self.pictures = {key: decode(run["picture"]) for key, run in self.runs.items()}
        omegas, widths = (sorted({key[place] for key in self.runs}) for place in (0, 1))
        self.omega_0, self.width = (
            ipywidgets.SelectionSlider(options=options, value=value, description=name, continuous_update=False)
            for options, value, name in ((omegas, 120, "omega_0"), (widths, 64, "width"))
        )
        controls = {"omega_0": self.omega_0, "width": self.width}
        super().__init__(controls, self._figure(), goal="find the run that is best between the pixels.")

    def update(self, omega_0: float, width: int) -> str:
        """Show one run."""
        if (omega_0, width) not in self.runs:
            raise ValueError(
                f"recorded are omega_0 {self.omega_0.options} and width {self.width.options}; "
                f"not {omega_0} with {width}"
            )
        run: dict[str, Any] = self.runs[omega_0, width]
        self.trained.set_data(run["steps"], run["trained_db"])
        self.between.set_data(run["steps"], run["render_db"])
        self.paper.set_data(self.pictures[omega_0, width])
        spreads = " ".join(f"{spread:.2f}" for spread in run["spreads"])
        return (
            f"omega_0 <b>{omega_0}</b>, width <b>{width}</b>, {run['parameters']:,} parameters: "
            f"{run['trained_db'][-1]:.1f} dB on the pixels, <b>{run['render_db'][-1]:.1f}</b> between; "
            f"arguments spread by {spreads} at the start"
        )

    def _figure(self) -> Figure:
        fig = Figure(figsize=(7.6, 3.3), dpi=80, layout="constrained")
        left, right = fig.subplots(1, 2, width_ratios=[4, 3])
        (self.trained,) = left.plot([], [], color="#0072B2", label="on the trained pixels")
        (self.between,) = left.plot([], [], "--", color="#D55E00", label="between them")
        left.axhline(self.record["constant_db"], color="black", linewidth=1, linestyle=":", label="one grey")
        left.set(xlim=(0, max(self.runs[1, 64]["steps"])), ylim=TOLD, title=f"This run, up to {TOLD[1]} dB")
        left.set(xlabel="step", ylabel="PSNR in dB")
        left.legend(loc="upper left")
        side = len(next(iter(self.pictures.values())))
        self.paper = right.imshow(np.ones((side, side)), cmap="gray", vmin=0, vmax=1)
        right.set(title=f"What it paints, {side} × {side}")
        right.axis("off")
        return fig
