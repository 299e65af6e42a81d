"""The smallest networks for exclusive or, and where they get stuck (lesson 03)."""

from __future__ import annotations

from dataclasses import dataclass

import ipywidgets
import numpy as np
from matplotlib.figure import Figure

from nnlab.errors import UnknownName
from nnlab.lessons.figures.surface import GRID, MAP, grid, scatter
from nnlab.lessons.widgets.explorer import Explorer, log_slider

X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
Y = np.array([0.0, 1.0, 1.0, 0.0])
WIDTHS, STARTS, ACTIVATIONS = (1, 2, 3, 4, 8), tuple(range(8)), ("tanh", "sigmoid", "relu")
LOG_EVERY = 10


class Xor(Explorer):
    """One hidden layer and a sigmoid at the end, trained on the four rows with the binary cross-entropy.

    steps: updates per run. All runs (21 rates, 5 widths, 8 starts, 3 activations) are made when the widget is built,
    side by side.
    """

    def __init__(self, *, steps: int = 1500) -> None:
        self.steps = steps
        self.rate = log_slider("rate", 1.0, high=1, step=0.25)
        self.rates = 10.0 ** np.arange(self.rate.min, self.rate.max + self.rate.step / 2, self.rate.step)
        self.width = ipywidgets.SelectionSlider(options=WIDTHS, value=2, description="width", continuous_update=False)
        self.start = ipywidgets.SelectionSlider(options=STARTS, value=4, description="start", continuous_update=False)
        self.activation = ipywidgets.ToggleButtons(options=ACTIVATIONS, description="activation")
        self.runs = {name: train(name, self.rates, steps) for name in ACTIVATIONS}
        self.points, self.extent = grid(X, margin=0.5)
        controls = {"rate": self.rate, "width": self.width, "start": self.start, "activation": self.activation}
        super().__init__(
            controls, self._figure(), goal="find the smallest network that gets all four rows right from every start."
        )

    def update(self, rate: float, width: int, start: int, activation: str) -> str:
        """Show the surface and the loss of the run whose rate is nearest."""
        if not self.rates[0] * 0.9 < rate < self.rates[-1] * 1.1:
            raise ValueError(f"the runs here have rates from {self.rates[0]:g} to {self.rates[-1]:g}, not {rate:g}")
        if width not in WIDTHS or start not in STARTS:
            raise ValueError(f"hidden units: {WIDTHS}, starts: {STARTS}; not {width} and {start}")
        if activation not in ACTIVATIONS:
            raise UnknownName("activation", activation, ACTIVATIONS)
        nearest = int(np.abs(np.log(self.rates / rate)).argmin())
        runs, place = self.runs[activation], (WIDTHS.index(width), STARTS.index(start), nearest)
        losses = runs.losses[(slice(None), *place)]
        right = int(((runs.probability(X, place) > 0.5) == (Y == 1)).sum())
        self.surface.set_data(runs.probability(self.points, place).reshape(GRID, GRID))
        self.line.set_data(np.arange(len(losses)) * LOG_EVERY, losses)
        verdict = "all <b>4</b> right" if right == 4 else f"<b>{right}</b> of 4 right"
        return (
            f"{width} hidden {activation}, start {start}, rate <b>{self.rates[nearest]:.3g}</b>: "
            f"loss {losses[0]:.3f} → <b>{losses[-1]:.3f}</b> in {self.steps} steps, {verdict}"
        )

    def _figure(self) -> Figure:
        fig = Figure(figsize=(7.6, 3.2), dpi=80, layout="constrained")
        left, right = fig.subplots(1, 2)
        self.surface = left.imshow(
            np.full((GRID, GRID), 0.5), cmap=MAP, vmin=0, vmax=1, origin="lower", extent=self.extent, aspect="auto"
        )
        fig.colorbar(self.surface, ax=left, label="probability of 1")
        scatter(left, X, Y[:, None])
        left.set(xlabel="a", ylabel="b", title="What the network says", xticks=[0, 1], yticks=[0, 1])
        left.grid(visible=False)
        (self.line,) = right.plot([], [], color="#0072B2")
        right.axhline(np.log(2), color="black", linewidth=1, linestyle="--")
        right.text(self.steps, np.log(2) * 1.1, "says 1/2 to all", ha="right", va="bottom", fontsize=9)
        right.set(xlabel="step", ylabel="loss", yscale="log", title="This run", xlim=(0, self.steps), ylim=(1e-3, 5))
        return fig


@dataclass(frozen=True)
class Runs:
    """Runs side by side: losses (logs, widths, starts, rates), first layers (3, units, ...), second (units + 1, ...).

    The last row of each layer is its bias; units that a narrow network does not have are zero.
    """

    activation: str
    losses: np.ndarray
    first: np.ndarray
    second: np.ndarray

    def probability(self, x: np.ndarray, place: tuple[int, int, int]) -> np.ndarray:
        """Of 1, for points (n, 2), by the network at a place (width, start, rate): (n,)."""
        first, second = self.first[(..., *place)], self.second[(..., *place)]
        hidden, _ = apply(self.activation, x @ first[:2] + first[2])
        probability: np.ndarray = 1 / (1 + np.exp(-(hidden @ second[:-1] + second[-1])))
        return probability


def train(activation: str, rates: np.ndarray, steps: int) -> Runs:
    """Full-batch gradient descent on all networks of one activation at once."""
    first, second = initial(activation, len(rates))
    units, shape = first.shape[1], first.shape[2:]
    present = np.arange(units)[:, None, None, None] < np.array(WIDTHS)[:, None, None]
    losses = np.empty((steps // LOG_EVERY + 1, *shape))
    ones, labels = np.column_stack([X, np.ones(4)]), Y[:, None, None, None]
    for step in range(steps + 1):
        before = (ones @ first.reshape(3, -1)).reshape(4, units, *shape)
        hidden, slope = apply(activation, before)
        hidden *= present  # else a sigmoid unit that is not there would say 1/2
        z = (hidden * second[:-1]).sum(axis=1) + second[-1]
        shrunk = np.exp(-np.abs(z))
        if step % LOG_EVERY == 0:
            losses[step // LOG_EVERY] = (np.maximum(z, 0) - z * labels + np.log1p(shrunk)).mean(axis=0)
        if step == steps:
            break
        dz = (np.where(z >= 0, 1, shrunk) / (1 + shrunk) - labels) / 4
        dbefore = dz[:, None] * second[:-1] * slope
        second[:-1] -= rates * (hidden * dz[:, None]).sum(axis=0)
        second[-1] -= rates * dz.sum(axis=0)
        first -= rates * (ones.T @ dbefore.reshape(4, -1)).reshape(first.shape)
    return Runs(activation, losses, first, second)


def initial(activation: str, rates: int) -> tuple[np.ndarray, np.ndarray]:
    """Xavier uniform (He for relu) weights and zero biases; the same start for every rate."""
    units = max(WIDTHS)
    shape = (len(WIDTHS), len(STARTS), rates)
    first, second = np.zeros((3, units, *shape)), np.zeros((units + 1, *shape))
    for i, width in enumerate(WIDTHS):
        for j, start in enumerate(STARTS):
            rng = np.random.default_rng(start)
            if activation == "relu":
                first[:2, :width, i, j] = rng.normal(scale=1.0, size=(2, width))[..., None]
            else:
                edge = np.sqrt(6 / (2 + width))
                first[:2, :width, i, j] = rng.uniform(-edge, edge, size=(2, width))[..., None]
            edge = np.sqrt(6 / (width + 1))
            second[:width, i, j] = rng.uniform(-edge, edge, size=(width, 1))
    return first, second


def apply(activation: str, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The activation and its slope."""
    if activation == "tanh":
        value = np.tanh(z)
        return value, 1 - value * value
    if activation == "sigmoid":
        value = 0.5 + 0.5 * np.tanh(0.5 * z)
        return value, value * (1 - value)
    return np.maximum(z, 0), (z > 0).astype(float)
