"""Depth, width and rate of a network for the house prices (lesson 04)."""

from __future__ import annotations

from itertools import pairwise

import ipywidgets
import numpy as np
from matplotlib.figure import Figure

from nnlab.lessons.widgets.explorer import Explorer, log_slider

DEPTHS, WIDTHS = (1, 2, 3), (2, 6, 12)
LOG_EVERY = 5


class Prices(Explorer):
    """Which network predicts the test houses best, and is it skill?

    x_train (n, d), y_train (n, 1), x_test (m, d), y_test (m, 1): standardised by the training rows. unit: what one
    standard deviation of y is worth, so that errors are told in prices. least_squares: the test error to beat. All
    runs (3 depths, 3 widths, 9 rates) are made when the widget is built, the rates side by side.
    """

    def __init__(
        self,
        x_train: np.ndarray,
        y_train: np.ndarray,
        x_test: np.ndarray,
        y_test: np.ndarray,
        *,
        unit: float,
        least_squares: float,
        steps: int = 400,
    ) -> None:
        self.steps, self.least_squares = steps, least_squares
        self.rate = log_slider("rate", 0.1, step=0.5)
        self.rates = 10.0 ** np.arange(self.rate.min, self.rate.max + self.rate.step / 2, self.rate.step)
        self.depth, self.width = (
            ipywidgets.SelectionSlider(options=options, value=value, description=name, continuous_update=False)
            for options, value, name in ((DEPTHS, 1, "hidden layers"), (WIDTHS, 6, "units in each"))
        )
        data = (x_train, y_train, x_test, y_test)
        self.runs = {
            (depth, width): train(data, depth, width, self.rates, steps) * unit**2
            for depth in DEPTHS
            for width in WIDTHS
        }
        controls = {"depth": self.depth, "width": self.width, "rate": self.rate}
        super().__init__(controls, self._figure(), goal="beat least squares on the test houses by as much as you can.")

    def update(self, depth: int, width: int, rate: float) -> str:
        """Show the run whose rate is nearest."""
        if (depth, width) not in self.runs:
            raise ValueError(f"hidden layers: {DEPTHS}, units: {WIDTHS}; not {depth} and {width}")
        if not self.rates[0] * 0.9 < rate < self.rates[-1] * 1.1:
            raise ValueError(f"the runs here have rates from {self.rates[0]:g} to {self.rates[-1]:g}, not {rate:g}")
        nearest = int(np.abs(np.log(self.rates / rate)).argmin())
        train_losses, test_losses = self.runs[depth, width][:, nearest]
        at = np.arange(len(test_losses)) * LOG_EVERY
        self.training.set_data(at, train_losses)
        self.testing.set_data(at, test_losses)
        run = f"{depth} × {width} units, rate <b>{self.rates[nearest]:.3g}</b>: "
        if not train_losses[-1] < train_losses[0]:
            return run + "the loss <b>diverges</b>"
        best = int(np.nanargmin(test_losses))
        return run + (
            f"after {self.steps} steps training MSE {train_losses[-1]:.1f}, test MSE <b>{test_losses[-1]:.1f}</b> "
            f"(best on the way {test_losses[best]:.1f}, step {at[best]}); least squares {self.least_squares:.1f}"
        )

    def _figure(self) -> Figure:
        fig = Figure(figsize=(7.0, 3.2), dpi=80, layout="constrained")
        ax = fig.subplots()
        (self.training,) = ax.plot([], [], color="#0072B2", label="321 training houses")
        (self.testing,) = ax.plot([], [], "--", color="#D55E00", label="93 test houses")
        ax.axhline(self.least_squares, color="black", linewidth=1, linestyle=":", label="least squares, test")
        ax.set(xlabel="step", ylabel="mean squared error", yscale="log", xlim=(0, self.steps), ylim=(25, 400))
        ax.set_yticks([30, 50, 100, 200, 400], ["30", "50", "100", "200", "400"])
        ax.set_yticks([], minor=True)
        ax.legend(loc="upper right")
        return fig


def train(data: tuple[np.ndarray, ...], depth: int, width: int, rates: np.ndarray, steps: int) -> np.ndarray:
    """Mean squared errors (2, rates, logs) on training and test rows, for one tanh network at all rates at once."""
    x, y, x_test, y_test = data
    rng = np.random.default_rng(0)
    weights, biases = [], []
    for fan_in, fan_out in pairwise([x.shape[1], *[width] * depth, 1]):
        edge = np.sqrt(6 / (fan_in + fan_out))
        weights.append(np.tile(rng.uniform(-edge, edge, size=(fan_in, fan_out)), (len(rates), 1, 1)))
        biases.append(np.zeros((len(rates), 1, fan_out)))
    losses = np.full((2, len(rates), steps // LOG_EVERY + 1), np.nan)
    step_size = rates[:, None, None]
    with np.errstate(over="ignore", invalid="ignore"):  # the highest rates may diverge
        for step in range(steps + 1):
            hidden = forward(x, weights, biases)
            error = hidden[-1] - y
            if step % LOG_EVERY == 0:
                log = step // LOG_EVERY
                losses[0, :, log] = (error**2).mean(axis=(1, 2))
                losses[1, :, log] = ((forward(x_test, weights, biases)[-1] - y_test) ** 2).mean(axis=(1, 2))
            back = 2 / len(x) * error
            for layer in reversed(range(len(weights))):
                weight = weights[layer].copy() if layer else None
                weights[layer] -= step_size * (hidden[layer].swapaxes(-1, -2) @ back)
                biases[layer] -= step_size * back.sum(axis=1, keepdims=True)
                if weight is not None:
                    back = (back @ weight.swapaxes(-1, -2)) * (1 - hidden[layer] ** 2)
    return losses


def forward(x: np.ndarray, weights: list[np.ndarray], biases: list[np.ndarray]) -> list[np.ndarray]:
    """The input and the output of every layer, (rates, rows, units) each; tanh between the layers."""
    outputs = [x]
    for layer, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        z = outputs[-1] @ weight + bias
        outputs.append(np.tanh(z) if layer < len(weights) - 1 else z)
    return outputs
