"""One training step of a small network on two homes, over batch and width: where the GPU begins to win (lesson 06)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nnlab import nn
from nnlab.backends import Backend
from nnlab.optim import SGD

INPUTS = 16


def step(b: Backend, batch: int, width: int) -> Callable[[], None]:
    """A function that takes one step: 16-width-width-1, tanh, mean squared error, plain gradient descent."""
    rng = np.random.default_rng(0)
    model = nn.mlp([INPUTS, width, width, 1], backend=b, rng=rng)
    x, y = b.asarray(rng.normal(size=(batch, INPUTS))), b.asarray(rng.normal(size=(batch, 1)))
    optimizer = SGD()

    def run() -> None:
        _, gradient = nn.losses.mse(model(x), y)
        model.backward(gradient)
        optimizer.update(model.parameters, model.gradients, 0.01)

    return run


def seconds(b: Backend, batches: Sequence[int], widths: Sequence[int]) -> np.ndarray:
    """Least seconds of a step, (len(widths), len(batches)), on the clock of `b`."""
    return np.array([[_time(b, batch, width) for batch in batches] for width in widths])


def crossing(batches: Sequence[int], host: np.ndarray, device: np.ndarray) -> int | None:
    """The first batch from which on the device is faster at every larger one, None where it is not at the largest."""
    wins = np.asarray(device) < np.asarray(host)
    if not wins[-1]:
        return None
    losses = np.flatnonzero(~wins)
    return int(batches[losses[-1] + 1 if losses.size else 0])


def _time(b: Backend, batch: int, width: int) -> float:
    repeats = 3 if batch * width * width < 1e8 else 1
    return b.time(step(b, batch, width), warmup=1, repeats=repeats).min
