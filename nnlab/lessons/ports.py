"""The ports of the spam filter of lesson 05: one epoch of logistic regression, more or less well moved to a GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nnlab.backends import Array, Backend, Receipt
from nnlab.datasets import StandardScaler, load_email

RATE = 0.1


@dataclass(frozen=True)
class Port:
    """How an epoch is run.

    rows: mails at a time, None for all. masks: a sigmoid in two branches, told apart by boolean masks. upload: the
    mails go up in each epoch. read: the loss becomes a Python number in each epoch.
    """

    rows: int | None = None
    masks: bool = False
    upload: bool = False
    read: bool = False
    dtype: str = "float64"


PORTS = {
    "mail by mail": Port(rows=1, masks=True, upload=True, read=True),
    "whole batch": Port(masks=True, upload=True, read=True),
    "no masks": Port(upload=True, read=True),
    "no uploads": Port(read=True),
    "no reads": Port(),
    "float32": Port(dtype="float32"),
}


def mails() -> tuple[np.ndarray, np.ndarray]:
    """The training mails (3530, 20), a column of ones and standardised features, and their labels (3530, 1)."""
    data = load_email()
    scaler = StandardScaler().fit(data.x_train)
    return np.column_stack([np.ones(len(data.x_train)), scaler.transform(data.x_train)]), data.y_train


def masked_sigmoid(xp: Any, z: Array) -> Array:
    """As the first port had it: safe at both ends, and a boolean mask for each."""
    p = xp.zeros_like(z)
    right = z >= 0
    p[right] = 1 / (1 + xp.exp(-z[right]))
    e = xp.exp(z[~right])
    p[~right] = e / (1 + e)
    return p


def plain_sigmoid(xp: Any, z: Array) -> Array:
    """The same values without a mask."""
    e = xp.exp(-xp.abs(z))
    return xp.where(z >= 0, 1.0, e) / (1.0 + e)


def epoch(xp: Any, x: Array, y: Array, w: Array, sigmoid: Callable[..., Array], rows: int) -> Array:
    """One step down the slope of the mean cross-entropy, its sum made `rows` mails at a time; the loss before it."""
    slope = loss = 0.0
    for i in range(0, len(x), rows):
        a, t = x[i : i + rows], y[i : i + rows]
        p = sigmoid(xp, a @ w)
        slope = slope + a.T @ (p - t)
        loss = loss - (t * xp.log(p) + (1 - t) * xp.log(1 - p)).sum()
    w -= RATE / len(x) * slope
    return loss / len(x)


def runner(b: Backend, port: Port, x_host: np.ndarray, y_host: np.ndarray) -> Callable[[], object]:
    """A function that runs one epoch of the port on `b`, with its data where the port wants them."""
    b = b.astype(port.dtype)
    x, y, w = b.asarray(x_host), b.asarray(y_host), b.asarray(np.zeros((x_host.shape[1], 1)))
    sigmoid = masked_sigmoid if port.masks else plain_sigmoid

    def run() -> object:
        here, there = (b.asarray(x_host), b.asarray(y_host)) if port.upload else (x, y)
        loss = epoch(b.xp, here, there, w, sigmoid, port.rows or len(x_host))
        return float(loss) if port.read else loss

    return run


def receipt_of(b: Backend, port: Port, x_host: np.ndarray, y_host: np.ndarray) -> Receipt:
    """The receipt of one epoch, first calls apart."""
    run = runner(b, port, x_host, y_host)
    run()
    with b.measure() as receipt:
        run()
    return receipt
