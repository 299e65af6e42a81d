"""Measures of a classifier that a person reads; each returns a Python float.

probability: (n, 1) or (n,), the predicted chance of class 1. target: the same shape, 0 or 1. Both on one backend;
each call copies both to the host. ShapeError where the shapes differ.
"""

from __future__ import annotations

import numpy as np

from nnlab.backends import Array, backend_of
from nnlab.nn.losses import bce, check_same_shape


def accuracy(probability: Array, target: Array, *, threshold: float = 0.5) -> float:
    """The share of rows whose class, 1 where probability >= threshold, is right."""
    p, t = _on_host(probability, target)
    return float(np.mean((p >= threshold) == (t == 1)))


def recall(probability: Array, target: Array, *, threshold: float = 0.5) -> float:
    """Of the rows that are class 1, the share that was found; nan where there are none."""
    p, t = _on_host(probability, target)
    positive = t == 1
    return float(np.mean(p[positive] >= threshold)) if positive.any() else float("nan")


def precision(probability: Array, target: Array, *, threshold: float = 0.5) -> float:
    """Of the rows that were called class 1, the share that is; nan where none was called so."""
    p, t = _on_host(probability, target)
    called = p >= threshold
    return float(np.mean(t[called] == 1)) if called.any() else float("nan")


def log_loss(probability: Array, target: Array, *, clip: float = 1e-7) -> float:
    """Mean binary cross-entropy in nats: low where confident and right, high where confident and wrong."""
    p, t = _on_host(probability, target)
    return float(bce(p.astype(np.float64), t.astype(np.float64), clip=clip)[0])


def _on_host(probability: Array, target: Array) -> tuple[np.ndarray, np.ndarray]:
    b = backend_of(probability)
    b.require_home(target=target)
    check_same_shape(probability, target)
    return b.to_host(probability), b.to_host(target)
