"""The exercises of lesson 16: which bound holds a step, when a product leaves the memory's roof, and the next step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nnlab.backends import backend
from nnlab.lessons import climb, climb_costs
from nnlab.lessons.cub_step import SIZES, layers
from nnlab.lessons.exercises import exercise, finished

Function = Callable[..., Any]
ASKED, BARE = 11.6e-6, 6.9e-6  # seconds of the host for an operation that Python asks for, and for a bare launch
ROOM = 0.05  # rounding is welcome
PREDICTED = ("elementwise work fused", "the step as a graph", "fused engine, 3xTF32")


def least(label: str) -> dict[str, float]:
    """The three bounds of a way on the cub and an H200, in microseconds, as the lesson's prices make them."""
    way = next(way for way in climb.DEVICE if way.label == label)
    cost = climb_costs.cost(way, "h200", SIZES, 40_000)
    assert cost is not None
    price = ASKED if way.engine is None and not way.graph else BARE
    return {name: 1e6 * seconds for name, seconds in (cost.bounds | {"launches": cost.launches * price}).items()}


@exercise("16.predict", right="No step can be faster than that. How far above it they end is what the figure shows.")
def predict(value: dict[str, float]) -> str | None:
    """Fill in the dictionary: the least µs that a step can take, the largest of its three bounds."""
    missing = [name for name in PREDICTED if name not in value]
    if missing:
        return f"{missing[0]!r} is missing."
    for name in PREDICTED:
        bounds, yours = least(name), float(finished(value[name]))
        rules = max(bounds, key=bounds.__getitem__)
        if abs(yours - bounds[rules]) <= ROOM * bounds[rules]:
            continue
        for other, right in bounds.items():
            if other != rules and abs(yours - right) <= ROOM * right:
                return f"{name!r}: {yours:g} µs is the bound of {other}, but another one is larger."
        return f"{name!r}: the largest bound is that of {rules}, and it is not {yours:g} µs."
    return None


@exercise("16.intensity", right="That is where a product stands on the roofline's lower axis.")
def intensity(value: Function) -> str | None:
    """Write intensity(rows, inner, columns): the operations of a float32 product for each byte it reads or writes."""
    for shape in ((40_000, 64, 64), (3, 5, 7), (1, 40_000, 64)):
        rows, inner, columns = shape
        right = 2 * rows * inner * columns / (4 * (rows * inner + inner * columns + rows * columns))
        yours = float(finished(value(*shape)))
        if np.isclose(yours, right, rtol=1e-3):
            continue
        if np.isclose(yours, right / 2, rtol=1e-3):
            return "A multiplication and its addition are two operations."
        if np.isclose(yours, 4 * right, rtol=1e-3):
            return "A float32 number has four bytes."
        return f"For {rows:,} x {inner:,} times {inner:,} x {columns:,} it should be {right:.4g}, yours is {yours:.4g}."
    return None


@exercise("16.next_step", right="The same step, in fewer launches. The par says how few.")
def next_step(value: Function) -> str | None:
    """Write next_step(home, work, x, y, net, slopes, ones, everything, all_slopes): one step, in place; its loss."""
    b, sizes, steps = backend("sim"), (2, 5, 4, 1), 3
    rng = np.random.default_rng(16)
    host_x, host_y = rng.uniform(-1, 1, (9, 2)), rng.uniform(0, 1, (9, 1))
    (net, everything), (slopes, all_slopes) = climb.flat_layers(b, sizes), climb.flat_layers(b, sizes, zero=True)
    wanted = [(w.astype(np.float64), c.astype(np.float64)) for w, c in layers(backend("numpy"), sizes)]
    x, y, ones = b.asarray(host_x), b.asarray(host_y), b.xp.ones((1, 9), dtype="float32")
    work = climb.pieces(b, fused=True)
    for done in range(steps):
        loss = finished(value(b, work, x, y, net, slopes, ones, everything, all_slopes))
        right = _step(host_x, host_y, wanted)
        if not b.owns(loss):
            return f"The loss should stay on the device, yours is {type(loss).__name__}."
        if not np.isclose(float(loss), right, rtol=1e-4):
            return f"In step {done + 1} the loss should be {right:.5f}, yours is {float(loss):.5f}."
    found = b.to_host(everything)
    if not np.allclose(found, np.concatenate([part.ravel() for layer in wanted for part in layer]), atol=1e-5):
        return f"After {steps} steps the numbers in `everything` are not those of the lesson's step."
    return None


def _step(x: np.ndarray, y: np.ndarray, net: list[tuple[np.ndarray, np.ndarray]]) -> float:
    """The lesson's step on the host, in float64."""
    outputs = [x]
    for i, (w, bias) in enumerate(net):
        z = outputs[-1] @ w + bias
        outputs.append(np.tanh(z) if i < len(net) - 1 else 1 / (1 + np.exp(-z)))
    error = outputs[-1] - y
    gradient = 2 / len(x) * error * outputs[-1] * (1 - outputs[-1])
    for i in reversed(range(len(net))):
        w, bias = net[i]
        slope, bias_slope = outputs[i].T @ gradient, gradient.sum(axis=0, keepdims=True)
        gradient = gradient @ w.T * (1 - outputs[i] ** 2)
        w -= climb.RATE * slope
        bias -= climb.RATE * bias_slope
    return float((error**2).mean())
