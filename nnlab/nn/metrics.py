"""Measures of a classifier that a person reads; each returns a Python float.

probability: (n, 1) or (n,), the predicted chance of class 1. target: the same shape, 0 or 1. Both on one backend;
each call copies both to the host. Raises ShapeError where the shapes differ, ValueError for a probability outside
[0, 1] (such as a logit) and for a target that is no class.
"""

from __future__ import annotations

import numpy as np

from nnlab.backends import Array, backend_of
from nnlab.nn.losses import bce, check_same_shape


def accuracy(probability: Array, target: Array, *, threshold: float = 0.5) -> float:
    """The share of rows whose class, 1 where probability >= threshold, is right."""
    p, t = _classified(probability, target)
    return float(np.mean((p >= threshold) == (t == 1)))


def recall(probability: Array, target: Array, *, threshold: float = 0.5) -> float:
    """Of the rows that are class 1, the share that was found; nan where there are none."""
    p, t = _classified(probability, target)
    positive = t == 1
    return float(np.mean(p[positive] >= threshold)) if positive.any() else float("nan")


def precision(probability: Array, target: Array, *, threshold: float = 0.5) -> float:
    """Of the rows that were called class 1, the share that is; nan where none was called so."""
    p, t = _classified(probability, target)
    called = p >= threshold
    return float(np.mean(t[called] == 1)) if called.any() else float("nan")


def log_loss(probability: Array, target: Array, *, clip: float = 1e-7) -> float:
    """Mean binary cross-entropy in nats: low where confident and right, high where confident and wrong."""
    p, t = _on_host(probability, target)
    return float(bce(p.astype(np.float64), t.astype(np.float64), clip=clip)[0])


def _classified(probability: Array, target: Array) -> tuple[np.ndarray, np.ndarray]:
    p, t = _on_host(probability, target)
    if not (p.min() >= 0 and p.max() <= 1):
        raise ValueError(
            f"probability must lie in [0, 1]; found {p.min():g} .. {p.max():g} (nnlab.nn.sigmoid makes one of a logit)"
        )
    if not ((t == 0) | (t == 1)).all():
        raise ValueError(f"target must be 0 or 1; found {t.min():g} .. {t.max():g}")
    return p, t


def _on_host(probability: Array, target: Array) -> tuple[np.ndarray, np.ndarray]:
    b = backend_of(probability)
    b.require_home(target=target)
    check_same_shape(probability, target)
    return b.to_host(probability), b.to_host(target)
