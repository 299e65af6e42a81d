"""The learning rate of gradient descent on a straight-line model (lesson 01)."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from nnlab.lessons.widgets.explorer import Explorer, log_slider

TOO_HIGH = 1e6  # times the starting loss: the run has diverged
CLOSE = 1e-3  # above the least loss, as a share of it: the run has arrived
LOWEST, TOP = 1e-7, 1e3  # the shares that the figure shows


class LearningRate(Explorer):
    """Which learning rate fits the model fastest, and which is too much?

    x: (n, d), standardised features. y: (n, 1), standardised targets. steps: updates per run. All runs, one for
    each position of the slider, are computed when the widget is built.
    """

    def __init__(self, x: np.ndarray, y: np.ndarray, *, steps: int = 500) -> None:
        self.rate = log_slider("rate", 0.01)
        exponents = np.arange(self.rate.min, self.rate.max + self.rate.step / 2, self.rate.step)
        self.rates, self.steps = 10.0**exponents, steps
        self.losses, self.best = descend(x, y, self.rates, steps)
        self.tried: dict[float, float] = {}
        super().__init__({"rate": self.rate}, self._figure(), goal="find the largest rate that still converges.")

    def update(self, rate: float) -> str:
        """Show the run whose rate is nearest."""
        if not rate > 0:
            raise ValueError(f"a learning rate is greater than 0, not {rate:g}")
        if not self.rates[0] * 0.9 < rate < self.rates[-1] * 1.1:
            raise ValueError(f"the runs here have rates from {self.rates[0]:g} to {self.rates[-1]:g}, not {rate:g}")
        nearest = int(np.abs(np.log(self.rates / rate)).argmin())
        rate, losses = float(self.rates[nearest]), self.losses[nearest]
        lost = np.flatnonzero(~(losses < TOO_HIGH * losses[0]))
        end = int(lost[0]) if lost.size else len(losses)
        self.line.set_data(np.arange(end), self._gap(losses[:end]))
        self.tried[rate] = np.inf if lost.size or losses[-1] > losses[0] else float(self._gap(losses[-1]))
        self._draw_tries(rate)
        return f"rate <b>{rate:.3g}</b>: {self._verdict(losses, end)}"

    def _gap(self, losses: np.ndarray) -> np.ndarray:
        """How far above the least loss, as a share of it; no less than the figure shows."""
        return np.maximum(losses / self.best - 1, LOWEST)

    def _verdict(self, losses: np.ndarray, end: int) -> str:
        if end < len(losses):
            return f"the loss is a million times its start after {end} steps: it <b>diverges</b>"
        if losses[-1] > losses[0]:
            return f"loss {losses[0]:.4g} → {losses[-1]:.4g}: it grows step by step, it <b>diverges</b>"
        text = f"loss {losses[0]:.4g} → <b>{losses[-1]:.4g}</b> in {self.steps} steps, least squares {self.best:.4g}"
        close = np.flatnonzero(self._gap(losses) < CLOSE)
        return text + (f"; within 0.1 % after <b>{close[0]}</b> steps" if close.size else "; not there yet")

    def _figure(self) -> Figure:
        fig = Figure(figsize=(7.6, 3.0), dpi=80, layout="constrained")
        left, right = fig.subplots(1, 2, width_ratios=[3, 2], sharey=True)
        (self.line,) = left.plot([], [], color="#0072B2")
        left.set(xlabel="step", ylabel="loss above least squares", title="This run", xlim=(0, self.steps))
        left.set(yscale="log", ylim=(LOWEST / 2, 2 * TOP))
        (self.converged,) = right.plot([], [], "o", color="#009E73")
        (self.diverged,) = right.plot([], [], "X", color="#D55E00", markersize=7)
        (self.current,) = right.plot([], [], "o", color="none", markeredgecolor="black", markersize=12)
        right.set(xlabel="rate", xscale="log", title="At the end (✕ diverged)")
        right.set(xlim=(self.rates[0] * 0.7, self.rates[-1] * 1.4))
        left.text(self.steps * 0.99, CLOSE * 0.6, "arrived", ha="right", va="top", fontsize=9)
        for ax in (left, right):
            ax.axhline(CLOSE, color="black", linewidth=1, linestyle="--")
            ax.set_yticks([1e-6, 1e-3, 1, 1e3], ["0.0001 %", "0.1 %", "100 %", "1000 ×"], minor=False)
        return fig

    def _draw_tries(self, rate: float) -> None:
        good = {r: gap for r, gap in self.tried.items() if np.isfinite(gap)}
        bad = [r for r in self.tried if r not in good]
        self.converged.set_data(list(good), list(good.values()))
        self.diverged.set_data(bad, [TOP] * len(bad))
        self.current.set_data([rate], [good.get(rate, TOP)])


def descend(x: np.ndarray, y: np.ndarray, rates: np.ndarray, steps: int) -> tuple[np.ndarray, float]:
    """Mean squared error (len(rates), steps + 1) of gradient descent from zero, all rates at once, and the least.

    The loss of a linear model is a quadratic in its weights, so that A'A and A'y are all that a step needs.
    """
    a = np.column_stack([np.ones(len(x)), x])
    gram, moment, power = a.T @ a / len(a), a.T @ y[:, 0] / len(a), float((y**2).mean())
    w = np.zeros((len(rates), a.shape[1]))
    losses = np.empty((len(rates), steps + 1))
    with np.errstate(over="ignore", invalid="ignore"):  # runs that diverge may leave the range of numbers
        for step in range(steps + 1):
            slope = w @ gram
            losses[:, step] = power + ((slope - 2 * moment) * w).sum(axis=1)
            w -= rates[:, None] * 2 * (slope - moment)
    best = np.linalg.solve(gram, moment)
    return losses, power - float(best @ moment)
