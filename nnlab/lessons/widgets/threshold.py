"""Where to draw the line between spam and ham (lesson 02)."""

from __future__ import annotations

import ipywidgets
import numpy as np
from matplotlib.figure import Figure

from nnlab.lessons.widgets.explorer import Explorer


class Threshold(Explorer):
    """Mails whose probability of spam is at least the threshold are stopped; how many are spam, how many ham?

    p: probabilities of spam, (n,) or (n, 1). y: 1 for spam, 0 for ham, of the same size.
    """

    def __init__(self, p: np.ndarray, y: np.ndarray) -> None:
        self.p, self.spam = np.ravel(p).astype(float), np.ravel(y) == 1
        if self.p.shape != self.spam.shape:
            raise ValueError(f"p has {self.p.size} values and y {self.spam.size}; there must be one of each a mail")
        self.threshold = ipywidgets.FloatSlider(
            value=0.5, min=0.0, max=1.0, step=0.01, description="threshold",
            continuous_update=False, readout_format=".2f", layout=ipywidgets.Layout(width="480px"),
        )  # fmt: skip
        controls = {"threshold": self.threshold}
        super().__init__(controls, self._figure(), goal="stop half of the spam with as little lost ham as you can.")

    def update(self, threshold: float) -> str:
        """Count what is stopped and what is let through."""
        if not 0 <= threshold <= 1:
            raise ValueError(f"a threshold is a probability, from 0 to 1, not {threshold:g}")
        stopped = self.p >= threshold
        found, lost = int((stopped & self.spam).sum()), int((stopped & ~self.spam).sum())
        spam, ham = int(self.spam.sum()), int((~self.spam).sum())
        self.line.set_xdata([threshold, threshold])
        self.point.set_data([found], [lost])
        right = (found + ham - lost) / len(self.p)
        precision = f"{found / (found + lost):.0%}" if found + lost else "undefined, nothing is stopped"
        return (
            f"threshold <b>{threshold:.2f}</b>: <b>{found}</b> of {spam} spam stopped (recall {found / spam:.0%}), "
            f"<b>{lost}</b> of {ham} ham lost; precision {precision}; accuracy {right:.2%}"
        )

    def _figure(self) -> Figure:
        fig = Figure(figsize=(7.6, 3.0), dpi=80, layout="constrained")
        left, right = fig.subplots(1, 2, width_ratios=[3, 2])
        groups = [self.p[~self.spam], self.p[self.spam]]
        left.hist(groups, bins=25, range=(0, 1), stacked=True, color=["#56B4E9", "#D55E00"], label=["ham", "spam"])
        self.line = left.axvline(0.5, color="black", linestyle="--")
        left.set(xlabel="probability of spam", ylabel="mails", yscale="symlog", title="let through | stopped")
        left.legend(loc="upper right")
        steps = np.unique(np.append(self.p, [0.0, 1.1]))
        spam = [int((self.p[self.spam] >= step).sum()) for step in steps]
        ham = [int((self.p[~self.spam] >= step).sum()) for step in steps]
        right.plot(spam, ham, color="#0072B2")
        (self.point,) = right.plot([], [], "o", color="none", markeredgecolor="black", markersize=12)
        right.set(xlabel="spam stopped", ylabel="ham lost", yscale="symlog", title="The trade")
        return fig
