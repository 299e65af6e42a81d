"""The exercises of lesson 06: prediction through the doors, a rate that does not widen, training with three copies."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from nnlab.backends import backend
from nnlab.lessons.exercises import exercise, finished

Function = Callable[..., Any]


@exercise("06.predict", right="One door in, one door out, and the weights stay where they live.")
def predict(value: Function) -> str | None:
    """Write predict(home, x_host, w): the product of host rows and weights of that home, as a host array."""
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=(5, 3)), rng.normal(size=(3, 1))
    for b in (backend("numpy", dtype="float64"), backend("sim", dtype="float64")):
        weights = b.asarray(w)
        with b.measure() as receipt:
            answer = finished(value(b, x, weights))
        if not isinstance(answer, np.ndarray):
            return f"On {b.home} the answer still lives on the device: take it through home.to_host(...)."
        if answer.shape != (5, 1):
            return f"For x (5, 3) and w (3, 1) the result should be (5, 1), yours is {answer.shape}."
        if not np.allclose(answer, x @ w):
            zeros = " All zeros: is the product written into a copy?" if not answer.any() else ""
            return f"On {b.home} the numbers are wrong.{zeros}"
        copies = (receipt.h2d_copies or 0) + (receipt.d2h_copies or 0)
        if copies > 2:
            return f"It is right, but makes {copies} copies where x goes up once and the result comes down once."
    return None


@exercise("06.rate", right="A Python float takes the type of the array it meets; a NumPy scalar does not.")
def rate(value: Function) -> str | None:
    """Write rate(k, n): half a cosine from 0.1 at k = 0 down to 0 at k = n, that leaves float32 arrays float32."""
    for k in (0, 3, 5, 10):
        answer = finished(value(k, 10))
        right = 0.05 * (1 + math.cos(math.pi * k / 10))
        if not np.isclose(float(answer), right):
            return f"At k = {k} of n = 10 it should be {right:.4f}, yours gives {float(answer):.4f}."
        kind = type(answer).__name__
        found = (answer * np.ones(2, np.float32)).dtype
        if found != np.float32:
            return f"The numbers are right, but the rate is a {kind}, and times a float32 array it gives {found}."
        if type(answer) is not float:
            return f"The numbers are right, but the rate is a {kind}; make it a Python float."
    return None


@exercise("06.quiet", right="Up at the start, down at the end, and nothing in between.")
def quiet(value: Function) -> str | None:
    """Write quiet_train(home, x_host, y_host, rate, epochs): the weights that chatty_train finds, as a host array."""
    rng = np.random.default_rng(4)
    x, y, w = rng.normal(size=(20, 3)), rng.normal(size=(20, 1)), np.zeros((3, 1))
    for _ in range(7):
        w -= 0.1 / 20 * x.T @ (x @ w - y)
    for b in (backend("numpy", dtype="float64"), backend("sim", dtype="float64")):
        answer = finished(value(b, x, y, 0.1, 7))
        if not isinstance(answer, np.ndarray):
            return f"On {b.home} the weights still live on the device: take them through home.to_host(...)."
        if answer.shape != (3, 1) or not np.allclose(answer, w):
            return f"On {b.home}, after 7 epochs w should be {w.ravel().round(4)}, yours is {np.ravel(answer)}."
    return None
