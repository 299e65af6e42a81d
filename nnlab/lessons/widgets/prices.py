"""Depth, width and learning rate of a network that predicts prices (lesson 04)."""

from __future__ import annotations

from itertools import pairwise

import ipywidgets
import numpy as np
from matplotlib.figure import Figure

from nnlab.lessons.widgets.explorer import Explorer, log_slider
from nnlab.nn.initialisers import xavier

DEPTHS, WIDTHS = (0, 1, 2, 3), (2, 4, 8)
SEEDS = 3
LOW, HIGH = 40.0, 400.0  # the errors that the figure shows

Layers = list[tuple[np.ndarray, np.ndarray]]


class Prices(Explorer):
    """How many hidden layers, how wide, and which rate? Three starts for every choice.

    x_train, x_test: (n, d), standardised features. y_train, y_test: (n, 1), in their own unit. steps: updates per
    run, on all rows. All runs, one for each position of the three sliders, are computed when the widget is built.
    """

    def __init__(
        self, x_train: np.ndarray, y_train: np.ndarray, x_test: np.ndarray, y_test: np.ndarray, *, steps: int = 200
    ) -> None:
        self.depth = _choice("hidden layers", DEPTHS, 0)
        self.width = _choice("units in each", WIDTHS, 4)
        self.rate = log_slider("rate", 0.01, step=1 / 3)
        exponents = np.arange(self.rate.min, self.rate.max + self.rate.step / 2, self.rate.step)
        self.rates, self.steps = 10.0**exponents, steps
        mean, unit = y_train.mean(), y_train.std()
        standard, standard_test = (y_train - mean) / unit, (y_test - mean) / unit
        self.runs = {}
        for sizes in {self._sizes(x_train.shape[1], depth, width) for depth in DEPTHS for width in WIDTHS}:
            train, test = train_all(sizes, self.rates, x_train, standard, x_test, standard_test, steps)
            self.runs[sizes] = train * unit**2, test * unit**2
        self.inputs = x_train.shape[1]
        self.line_train, self.line_test = (e * unit**2 for e in _line(x_train, standard, x_test, standard_test))
        self.tried: dict[tuple[tuple[int, ...], float], np.ndarray] = {}
        controls = {"depth": self.depth, "width": self.width, "rate": self.rate}
        goal = "make all three starts beat the straight line on the test rows, with as few parameters as you can."
        super().__init__(controls, self._figure(), goal=goal)

    def update(self, depth: int, width: int, rate: float) -> str:
        """Show the three runs of this network at the nearest rate."""
        if depth not in DEPTHS or width not in WIDTHS:
            raise ValueError(f"the networks here have {DEPTHS} hidden layers of {WIDTHS} units, not {depth} of {width}")
        if not self.rates[0] * 0.9 < rate < self.rates[-1] * 1.1:
            raise ValueError(f"the runs here have rates from {self.rates[0]:g} to {self.rates[-1]:g}, not {rate:g}")
        nearest = int(np.abs(np.log(self.rates / rate)).argmin())
        sizes = self._sizes(self.inputs, depth, width)
        losses, errors = (array[nearest] for array in self.runs[sizes])
        for artist, run in zip(self.curves, losses, strict=True):
            artist.set_data(np.arange(len(run)), np.where(run < 1e6, run, np.nan))
        self.tried[sizes, float(self.rates[nearest])] = errors
        self._draw_tries(count(sizes), errors)
        self.title.set_text("-".join(map(str, sizes)) + f" at rate {self.rates[nearest]:.2g}")
        return f"<b>{count(sizes)}</b> parameters, rate {self.rates[nearest]:.2g}: {self._verdict(errors)}"

    def _verdict(self, errors: np.ndarray) -> str:
        shown = ", ".join(f"{error:.1f}" if error < 1e4 else "diverged" for error in errors)
        better = int((np.round(np.minimum(errors, 1e9), 1) < np.round(self.line_test, 1)).sum())  # as shown
        verdict = {SEEDS: "<b>all three beat it</b>", 0: "none beats it"}.get(better, f"{better} of {SEEDS} beat it")
        return f"test MSE {shown}; the straight line has {self.line_test:.1f}: {verdict}"

    def _sizes(self, inputs: int, depth: int, width: int) -> tuple[int, ...]:
        return (inputs, *[width] * depth, 1)

    def _figure(self) -> Figure:
        fig = Figure(figsize=(7.6, 3.2), dpi=80, layout="constrained")
        left, right = fig.subplots(1, 2, sharey=True)
        self.curves = [
            left.plot([], [], style, color="#0072B2", label=f"start {seed}")[0]
            for seed, style in enumerate(("-", "--", ":"))
        ]
        left.axhline(self.line_train, color="black", linewidth=1)
        left.text(0.98 * self.steps, self.line_train, "straight line", ha="right", va="top", fontsize=9)
        self.title = left.set_title("")
        left.set(xlabel="step", ylabel="mean squared error", xlim=(0, self.steps), yscale="log", ylim=(LOW, HIGH))
        left.set_yticks([50, 100, 200, 400], ["50", "100", "200", "400"], minor=False)
        left.set_yticks([], minor=True)
        left.legend(title="training rows", loc="upper right")
        most = max(map(count, self.runs))
        (self.others,) = right.plot([], [], "o", color="#9a9a9a", markersize=4)
        (self.current,) = right.plot([], [], "o", color="#D55E00", markersize=7)
        right.axhline(self.line_test, color="black", linewidth=1)
        right.text(1.07 * most, self.line_test, "straight line", ha="right", va="bottom", fontsize=9)
        right.set(xlabel="parameters", xlim=(0, 1.08 * most), title="test rows, at the end")
        return fig

    def _draw_tries(self, parameters: int, errors: np.ndarray) -> None:
        points = [(count(sizes), error) for (sizes, _), tried in self.tried.items() for error in tried]
        self.others.set_data([x for x, _ in points], [_shown(y) for _, y in points])
        self.current.set_data([parameters] * len(errors), [_shown(error) for error in errors])


def train_all(
    sizes: tuple[int, ...], rates: np.ndarray, x: np.ndarray, y: np.ndarray, x_test: np.ndarray, y_test: np.ndarray,
    steps: int,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Training error (rates, seeds, steps + 1) and final test error (rates, seeds) of tanh networks, all at once.

    Seed s starts where `nnlab.nn.mlp(sizes, ..., rng=np.random.default_rng(s))` does. Diverged runs end at infinity.
    """
    layers: Layers = []
    drawn = [np.random.default_rng(seed) for seed in range(SEEDS)]
    for m, n in pairwise(sizes):
        weights = np.stack([xavier(rng, m, n) for rng in drawn] * len(rates))
        layers.append((weights, np.zeros((len(weights), 1, n))))
    rate = np.repeat(rates, SEEDS)[:, None, None]
    losses = np.empty((len(rate), steps + 1))
    with np.errstate(over="ignore", invalid="ignore"):  # some rates are too high, and that is to be seen
        for step in range(steps + 1):
            activations = _forward(layers, x)
            error = activations[-1] - y
            losses[:, step] = np.einsum("sij,sij->s", error, error) / len(y)
            if step < steps:
                layers = _descend(layers, activations, error * (2 / len(y)), rate)
        test = ((_forward(layers, x_test)[-1] - y_test) ** 2).mean(axis=(1, 2))
    losses, test = (np.where(np.isfinite(array), array, np.inf) for array in (losses, test))
    return losses.reshape(len(rates), SEEDS, -1), test.reshape(len(rates), SEEDS)


def count(sizes: tuple[int, ...]) -> int:
    """How many weights and biases a network of these sizes has."""
    return sum((m + 1) * n for m, n in pairwise(sizes))


def _forward(layers: Layers, x: np.ndarray) -> list[np.ndarray]:
    activations = [x]
    for place, (weight, bias) in enumerate(layers):
        z = activations[-1] @ weight
        z += bias
        activations.append(np.tanh(z, out=z) if place < len(layers) - 1 else z)
    return activations


def _descend(layers: Layers, activations: list[np.ndarray], slope: np.ndarray, rate: np.ndarray) -> Layers:
    after: Layers = []
    for place in reversed(range(len(layers))):
        weight, bias = layers[place]
        a = activations[place]
        after.append((weight - rate * (a.mT @ slope), bias - rate * slope.sum(axis=1, keepdims=True)))
        if place:
            slope = slope @ weight.mT
            slope *= 1 - a * a
    return after[::-1]


def _line(x: np.ndarray, y: np.ndarray, x_test: np.ndarray, y_test: np.ndarray) -> tuple[float, float]:
    """Training and test error of least squares."""
    a, a_test = (np.column_stack([np.ones(len(rows)), rows]) for rows in (x, x_test))
    weights = np.linalg.lstsq(a, y, rcond=None)[0]
    return float(((a @ weights - y) ** 2).mean()), float(((a_test @ weights - y_test) ** 2).mean())


def _shown(error: float) -> float:
    return float(min(max(error, LOW), HIGH))


def _choice(description: str, options: tuple[int, ...], value: int) -> ipywidgets.SelectionSlider:
    return ipywidgets.SelectionSlider(
        options=options, value=value, description=description, continuous_update=False,
        style={"description_width": "90px"}, layout=ipywidgets.Layout(width="320px"),
    )  # fmt: skip
