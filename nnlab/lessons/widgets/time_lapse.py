"""A network's picture, from the first step to the last (lesson 00)."""

from __future__ import annotations

from collections.abc import Mapping

import ipywidgets
import numpy as np
from matplotlib.figure import Figure

from nnlab.images import psnr
from nnlab.lessons.widgets.explorer import Explorer


class TimeLapse(Explorer):
    """At which step can you see what it will be?

    truth: (H, W), the picture to learn, in [0, 1] with white = 1. frames: step → what the network painted then, of
    the same shape. Values outside [0, 1] are shown as black or white.
    """

    def __init__(self, truth: np.ndarray, frames: Mapping[int, np.ndarray]) -> None:
        self.truth, self.frames = truth, {step: np.clip(frames[step], 0.0, 1.0) for step in sorted(frames)}
        steps = tuple(self.frames)
        self.step = ipywidgets.SelectionSlider(
            options=steps, value=steps[0], description="step", continuous_update=False,
            layout=ipywidgets.Layout(width="480px"),
        )  # fmt: skip
        super().__init__({"step": self.step}, self._figure(), goal="find the first step at which you see the cub.")

    def update(self, step: int) -> str:
        """Show the picture of this step and how close it is."""
        if step not in self.frames:
            raise ValueError(f"there are pictures of the steps {list(self.frames)}, not of {step}")
        self.shown.set_data(self.frames[step])
        return f"step <b>{step}</b>: PSNR {psnr(self.truth, self.frames[step], data_range=1.0):.1f} dB"

    def _figure(self) -> Figure:
        fig = Figure(figsize=(6.4, 3.2), dpi=80, layout="constrained")
        left, right = fig.subplots(1, 2)
        for ax, title in ((left, "the network's picture"), (right, "the pixels it learns")):
            ax.set_title(title, loc="center", fontsize=10)
            ax.axis("off")
        self.shown = left.imshow(np.ones_like(self.truth), cmap="gray", vmin=0, vmax=1)
        right.imshow(self.truth, cmap="gray", vmin=0, vmax=1)
        return fig
