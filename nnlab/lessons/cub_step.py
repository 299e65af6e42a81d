"""A training step on the lion cub, ported straight, and what copies, waits and column sums do to it (lesson 07)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from nnlab.backends import Array, Backend, backend
from nnlab.images import pixel_centres
from nnlab.lessons.ports import masked_sigmoid
from nnlab.lessons.recorded.cub import cub

SIZES = (2, 64, 64, 128, 64, 32, 32, 32, 1)
WAYS = ("straight", "loss read", "masks", "uploads", "product with ones")
ColumnSums = Callable[[Backend, Array], Array]


def layers(home: Backend, sizes: Sequence[int] = SIZES) -> list[tuple[Array, Array]]:
    """Xavier uniform weights (inputs, outputs) and zero biases (1, outputs), drawn on the host."""
    rng = np.random.default_rng(7)
    made = []
    for fan_in, fan_out in pairwise(sizes):
        edge = (6 / (fan_in + fan_out)) ** 0.5
        weight = rng.uniform(-edge, edge, size=(fan_in, fan_out))
        made.append((home.asarray(weight), home.asarray(np.zeros((1, fan_out)))))
    return made


def plain_sigmoid(xp: Any, z: Array) -> Array:
    """Through a hyperbolic tangent, which no z makes overflow."""
    return 0.5 + 0.5 * xp.tanh(0.5 * z)


def sum_rows(home: Backend, gradient: Array) -> Array:
    """The column sums as a reduction over the rows, (1, columns)."""
    return gradient.sum(axis=0, keepdims=True)


def product_rows(home: Backend, gradient: Array) -> Array:
    """The column sums as a product with a row of ones, (1, columns)."""
    return home.matmul(home.xp.ones((1, len(gradient)), dtype=home.dtype), gradient)


def step(
    home: Backend,
    x: Array,
    y: Array,
    net: list[tuple[Array, Array]],
    column_sums: ColumnSums = sum_rows,
    sigmoid: Callable[[Any, Array], Array] = plain_sigmoid,
    rate: float = 0.5,
) -> Array:
    """One step of gradient descent on the mean squared error; the loss before it, still on the device."""
    xp, outputs = home.xp, [x]
    for i, (w, bias) in enumerate(net):
        z = home.matmul(outputs[-1], w) + bias
        outputs.append(xp.tanh(z) if i < len(net) - 1 else sigmoid(xp, z))
    error = outputs[-1] - y
    gradient = 2 / len(x) * error * outputs[-1] * (1 - outputs[-1])
    for i in reversed(range(len(net))):
        w, bias = net[i]
        slope, bias_slope = home.matmul(outputs[i], gradient, transpose_a=True), column_sums(home, gradient)
        if i:
            gradient = home.matmul(gradient, w, transpose_b=True) * (1 - outputs[i] * outputs[i])
        w -= rate * slope
        bias -= rate * bias_slope
    return (error * error).mean()


def data(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Pixel centres (size * size, 2) and ink (size * size, 1) of the cub, on the host."""
    return pixel_centres(size, size, backend=backend("numpy")), cub(size).reshape(-1, 1)


def runner(
    home: Backend, way: str, x_host: np.ndarray, y_host: np.ndarray, sizes: Sequence[int] = SIZES
) -> Callable[[], object]:
    """A function that takes one step in one of the WAYS."""
    x, y, net = home.asarray(x_host), home.asarray(y_host), layers(home, sizes)
    column_sums = product_rows if way == "product with ones" else sum_rows
    sigmoid = masked_sigmoid if way == "masks" else plain_sigmoid

    def run() -> object:
        here, there = (home.asarray(x_host), home.asarray(y_host)) if way == "uploads" else (x, y)
        loss = step(home, here, there, net, column_sums, sigmoid)
        return float(loss) if way == "loss read" else loss

    return run
