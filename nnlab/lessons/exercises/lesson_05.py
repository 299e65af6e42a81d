"""The exercises of lesson 05: counting launches, a sigmoid without masks, a lean epoch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nnlab.backends import Backend, backend
from nnlab.lessons.exercises import exercise, finished

Function = Callable[..., Any]
STEP, ONCE = 20, 3  # launches of a step of the loop without masks, and of an epoch around it


@exercise("05.launches", right="The count follows the steps of the loop, never the mails in them.")
def launches(value: Function) -> str | None:
    """Write launches(mails, rows): how many launches an epoch without masks has, `rows` mails a step of its loop."""
    for mails, rows in ((3530, 3530), (3530, 1000), (3530, 100), (64, 64)):
        answer, right = finished(value(mails, rows)), STEP * -(-mails // rows) + ONCE
        if answer == STEP * (mails // rows) + ONCE and answer != right:
            return "The last step may be a short one, and it costs as many launches as the others: round up."
        if answer == STEP * -(-mails // rows):
            return "Nearly: the launches after the loop are not counted yet."
        if answer != right:
            return f"For {mails:,} mails, {rows:,} a step, there are {right:,} launches; yours gives {answer}."
    return None


@exercise("05.sigmoid", right="Both ends are safe, and nothing is counted on the host.")
def sigmoid(value: Function) -> str | None:
    """Write sigmoid(xp, z), safe for large |z| on both sides, without a mask, an `if` or a read."""
    z = np.array([[-1000.0], [-2.0], [0.0], [2.0], [1000.0]])
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        try:
            host = finished(value(np, z))
        except FloatingPointError as error:
            return f"On the host: {error}. Only exp of numbers up to 0 is safe."
    right = np.array([[0.0], [0.11920292], [0.5], [0.88079708], [1.0]])
    if np.shape(host) != z.shape or not np.allclose(host, right, atol=1e-8):
        return f"At −1000, −2, 0, 2, 1000 it should give {right.ravel().round(4)}, yours gives {np.ravel(host)}."
    b = backend("sim", dtype="float64")
    on_device = b.asarray(z)
    with b.measure() as receipt:
        value(b.xp, on_device)
    if receipt.d2h_copies or receipt.waits or receipt.h2d_copies:
        return f"It is right, but asks the device for {receipt.d2h_copies} reads and {receipt.waits} waits."
    return None


@exercise("05.lean", right="The same step as before.")
def lean(value: Function) -> str | None:
    """Write lean_epoch(xp, x, y, w, rate): move w down the slope of the mean cross-entropy, in place, and return w."""
    rng = np.random.default_rng(2)
    x, y, w = rng.normal(size=(30, 3)), (rng.random((30, 1)) < 0.4).astype(float), rng.normal(size=(3, 1))
    right = w - 0.5 / 30 * x.T @ (1 / (1 + np.exp(-x @ w)) - y)
    b: Backend = backend("sim", dtype="float64")
    device_w = b.asarray(w)
    answer = finished(value(b.xp, b.asarray(x), b.asarray(y), device_w, 0.5))
    if answer is not device_w:
        return "w itself is to be changed, and returned: w -= ..., then return w."
    found = b.to_host(answer)
    hints = {
        "the slope of the sum, not of the mean: divide by the number of rows": w - 30 * (w - right),
        "uphill: the step goes against the slope": 2 * w - right,
        "the start: nothing has moved": w,
    }
    for hint, values in hints.items():
        if np.allclose(found, values):
            return f"That is {hint}."
    return None if np.allclose(found, right) else f"After a step w should be {right.ravel()}, yours is {found.ravel()}."
