"""Where to crash, and what to forget (lesson 13)."""

from __future__ import annotations

import ipywidgets
import numpy as np
from matplotlib.figure import Figure

from nnlab.lessons.widgets.explorer import Explorer
from nnlab.training import cosine

FORGOTTEN = (
    "nothing",
    "the batch seed",
    "Adam's step count",
    "Adam's moments",
    "the place in the schedule",
    "all but the weights",
)
CRASHES = (20, 100, 200, 300, 380)
STEPS, BATCH, HIDDEN, RATE = 400, 64, 12, 0.05
SOON = 20  # steps after the crash in which the loss may jump


class Crash(Explorer):
    """A training run crashes, and goes on without something that it needs: what does that do?

    x: (n, d), y: (n, 1), standardised, n at least 64. unit: what a loss of 1 is worth, say the variance of the
    prices. The run is a network d-12-1 under Adam, 400 steps of 64 rows, a cosine from 0.05 to 0. All combinations
    are trained side by side when the widget is built.
    """

    def __init__(self, x: np.ndarray, y: np.ndarray, *, unit: float) -> None:
        self.cases = [(crash, forgotten) for crash in CRASHES for forgotten in FORGOTTEN]
        rates, losses, self.distances = train(x, y, self.cases)
        self.rates, self.losses = rates, losses * unit
        self.straight = self.cases.index((CRASHES[0], "nothing"))  # nothing forgotten: no crash at all
        self.crash = ipywidgets.SelectionSlider(
            options=CRASHES, value=200, description="crash at step", continuous_update=False
        )
        self.forgotten = ipywidgets.Dropdown(options=FORGOTTEN, value="Adam's moments", description="forget")
        controls = {"crash": self.crash, "forgotten": self.forgotten}
        goal = "find what makes the loss jump highest, and when forgetting it does almost no harm."
        super().__init__(controls, self._figure(), goal=goal)

    def update(self, crash: int, forgotten: str) -> str:
        """Show one run beside the one that never crashed."""
        if (crash, forgotten) not in self.cases:
            raise ValueError(f"crash at {CRASHES} and forget one of {FORGOTTEN}, not {crash} and {forgotten}")
        case = self.cases.index((crash, forgotten))
        loss, straight = self.losses[case], self.losses[self.straight]
        self.rate_line.set_ydata(self.rates[case])
        self.loss_line.set_ydata(loss)
        for line in self.at_crash:
            line.set_xdata([crash, crash])
        peak, right = (float(run[crash : crash + SOON].max()) for run in (loss, straight))
        return (
            f"crash at step {crash}, forgotten: <b>{forgotten}</b>. "
            f"Rate of the next step {self.rates[case][crash]:.4f} (right: {self.rates[self.straight][crash]:.4f}); "
            f"highest loss in the next {SOON} steps <b>{peak:.1f}</b> (right: {right:.1f}); "
            f"at the end <b>{loss[-1]:.1f}</b> (right: {straight[-1]:.1f}), "
            f"a weight off by up to <b>{self.distances[case]:.2g}</b>"
        )

    def _figure(self) -> Figure:
        fig = Figure(figsize=(8.0, 3.0), dpi=80, layout="constrained")
        left, right = fig.subplots(1, 2, width_ratios=[2, 3])
        steps = np.arange(STEPS + 1)
        (self.rate_line,) = left.plot(steps, self.rates[0], color="#D55E00")
        left.plot(steps, self.rates[self.straight], "--", color="black", linewidth=1)
        left.set(xlabel="step", ylabel="rate", ylim=(0, RATE * 1.05))
        (self.loss_line,) = right.plot(steps, self.losses[0], color="#D55E00", linewidth=1.3, label="after the crash")
        right.plot(steps, self.losses[self.straight], "--", color="black", linewidth=1, label="no crash")
        low, high = self.losses.min(), self.losses[self.straight][0]
        right.set(xlabel="step", ylabel="training loss", yscale="log", ylim=(0.9 * low, 1.1 * high))
        right.set_yticks([50, 100, 200], ["50", "100", "200"])
        right.set_yticks([], minor=True)
        right.legend(loc="upper right")
        self.at_crash = [ax.axvline(0, color="#56B4E9", linewidth=1.5, linestyle=":") for ax in (left, right)]
        return fig


def train(x: np.ndarray, y: np.ndarray, cases: list[tuple[int, str]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rates and losses (cases, STEPS + 1), and for each case its largest distance from the run without a crash."""
    schedule, count = cosine(RATE, STEPS), len(cases)
    parameters = start(x.shape[1], count)
    first, second = ([np.zeros_like(p) for p in parameters] for _ in range(2))  # Adam's moments
    crash = np.array([at for at, _ in cases])
    lost = {item: np.array([what in (item, "all but the weights") for _, what in cases]) for item in FORGOTTEN}
    updates, origin, reseeded = np.zeros(count), np.zeros(count, int), np.zeros(count, bool)
    rates, losses = np.empty((count, STEPS + 1)), np.empty((count, STEPS + 1))
    for step in range(STEPS + 1):
        now = crash == step
        reseeded |= now & lost["the batch seed"]
        updates[now & lost["Adam's step count"]] = 0
        origin[now & lost["the place in the schedule"]] = step
        for memory in (*first, *second):
            memory[now & lost["Adam's moments"]] = 0
        rates[:, step] = [schedule(step - begin) for begin in origin.tolist()]
        losses[:, step] = ((forward(x, parameters)[1] - y) ** 2).mean(axis=(1, 2))
        rows = np.where(reseeded[:, None], batch(1, step, len(x)), batch(0, step, len(x)))
        updates += 1
        adam(parameters, gradients(x[rows], y[rows], parameters), first, second, updates, rates[:, step])
    straight = cases.index((cases[0][0], "nothing"))
    distances = np.max([np.abs(p - p[straight]).reshape(count, -1).max(axis=1) for p in parameters], axis=0)
    return rates, losses, distances


def start(inputs: int, count: int) -> list[np.ndarray]:
    """`count` copies of one network inputs-12-1, as lists of arrays with the copies in front."""
    rng, parameters = np.random.default_rng(0), []
    for fan_in, fan_out in ((inputs, HIDDEN), (HIDDEN, 1)):
        bound = np.sqrt(6 / (fan_in + fan_out))
        parameters += [rng.uniform(-bound, bound, (fan_in, fan_out)), np.zeros((1, fan_out))]
    return [np.tile(p, (count, 1, 1)) for p in parameters]


def batch(seed: int, step: int, rows: int) -> np.ndarray:
    """The row numbers of a step: a shuffle an epoch, from the seed and the epoch alone."""
    epoch, place = divmod(step, rows // BATCH)
    return np.random.default_rng([seed, epoch]).permutation(rows)[place * BATCH : (place + 1) * BATCH]


def forward(x: np.ndarray, parameters: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Hidden values and predictions, with the copies in front."""
    w1, b1, w2, b2 = parameters
    hidden = np.tanh(x @ w1 + b1)
    return hidden, hidden @ w2 + b2


def gradients(x: np.ndarray, y: np.ndarray, parameters: list[np.ndarray]) -> list[np.ndarray]:
    """Of the mean squared error."""
    hidden, p = forward(x, parameters)
    back = 2 / y.shape[1] * (p - y)
    inner = back @ parameters[2].mT * (1 - hidden**2)
    sums = (inner.sum(axis=1, keepdims=True), back.sum(axis=1, keepdims=True))
    return [x.mT @ inner, sums[0], hidden.mT @ back, sums[1]]


def adam(
    parameters: list[np.ndarray],
    slopes: list[np.ndarray],
    first: list[np.ndarray],
    second: list[np.ndarray],
    updates: np.ndarray,
    rates: np.ndarray,
) -> None:
    """One update of every copy, with its own count and rate."""
    scale = (rates / (1 - 0.9**updates))[:, None, None]
    correct = (1 - 0.999**updates)[:, None, None]
    for p, g, m, v in zip(parameters, slopes, first, second, strict=True):
        m[...] += 0.1 * (g - m)
        v[...] += 0.001 * (g * g - v)
        p[...] -= scale * m / (np.sqrt(v / correct) + 1e-8)
