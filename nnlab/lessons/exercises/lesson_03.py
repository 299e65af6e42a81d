"""The exercises of lesson 03, exclusive or."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnlab.datasets import load_xor
from nnlab.lessons.exercises import Unfinished, exercise, finished
from nnlab.lessons.text import unfilled
from nnlab.nn import sigmoid


@exercise("03.by_hand", right="No training needed: OR, AND, and a line between them. All four points are right.")
def by_hand(value: Any) -> str | None:
    """Fill in W1, b1, W2 and b2 so that the network with two tanh units computes XOR."""
    shapes = {"W1": (2, 2), "b1": (1, 2), "W2": (2, 1), "b2": (1, 1)}
    net = {}
    for name, shape in shapes.items():
        given = np.asarray(finished(value[name]), dtype=float)
        if given.size != shape[0] * shape[1]:
            return f"{name} has the shape {shape}; yours is {given.shape}."
        net[name] = given.reshape(shape)
    xor = load_xor()
    h = np.tanh(xor.x_train @ net["W1"] + net["b1"])
    p = sigmoid(h @ net["W2"] + net["b2"])
    for row, seen, probability, target in zip(xor.x_train.astype(int), h, p[:, 0], xor.y_train[:, 0], strict=True):
        if abs(probability - target) > 0.1:
            return (
                f"For a = {row[0]}, b = {row[1]} the units give {seen[0]:+.2f} and {seen[1]:+.2f}, and p is "
                f"{probability:.2f}; wanted is {target:g}, to within 0.1."
            )
    return None


@exercise("03.shapes", right="Each gradient has the shape of what it belongs to, whatever the product.")
def shapes(value: Any) -> str | None:
    """Give the shapes of dW1, dH, dW2 and dz for 32 rows, 5 inputs, 7 hidden units and 3 outputs."""
    right = {"dW1": (5, 7), "dH": (32, 7), "dW2": (7, 3), "dz": (32, 3)}
    if any(unfilled(value[name]) for name in right):
        raise Unfinished
    for name, shape in right.items():
        given = tuple(value[name])
        if given == shape:
            continue
        if given == shape[::-1]:
            return f"{name} is turned round: rows of the product come first. Compare with the shape of {name[1:]}."
        return f"{name} cannot be {given}: it has the shape of {name[1:]}."
    return None


@exercise("03.relu", right="The mask comes from S. H >= 0 would be true everywhere and let every gradient through.")
def relu(value: Any) -> str | None:
    """Write relu_backward(dH, S): dS for H = max(S, 0), where dH and S have the same shape."""
    rng = np.random.default_rng(3)
    s, dh = rng.normal(size=(5, 4)), rng.normal(size=(5, 4))
    answer = np.asarray(finished(value(dh.copy(), s.copy())), dtype=float)
    if answer.shape != s.shape:
        return f"dS has the shape of S, here {s.shape}; yours has {answer.shape}."
    epsilon = 1e-6
    slope = (np.maximum(s + epsilon, 0) - np.maximum(s - epsilon, 0)) / (2 * epsilon)  # measured
    if np.allclose(answer, dh * slope, atol=1e-6):
        return None
    if np.allclose(answer, dh):
        return "Every gradient passes, as if S were positive everywhere. Which condition is true only where S > 0?"
    if np.allclose(answer, slope):
        return "That is the slope alone. The chain rule multiplies it by what comes from above, dH."
    row, column = np.argwhere(~np.isclose(answer, dh * slope, atol=1e-6))[0]
    return (
        f"For S = {s[row, column]:+.2f} and dH = {dh[row, column]:+.2f}, dS should be "
        f"{(dh * slope)[row, column]:+.2f}; yours is {answer[row, column]:+.2f}."
    )
