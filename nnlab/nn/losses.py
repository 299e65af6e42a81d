"""Loss functions: (prediction, target) -> (loss, gradient).

The loss is a 0-d array and the gradient, dLoss/dPrediction, an array of the prediction's shape; both stay in the
prediction's home, so that nothing is copied to the host. Means are over all elements (rows times outputs).
Every loss raises ShapeError for shapes that differ, even where broadcasting would find an answer, or that are empty,
MixedBackendError for arrays of different homes, and TypeError for dtypes that differ, or are not floating: float64
targets would silently turn float32 work into float64.
"""

from __future__ import annotations

from collections.abc import Callable

from nnlab.backends import Array, Backend, backend_of
from nnlab.errors import ShapeError, UnknownName

Loss = Callable[[Array, Array], tuple[Array, Array]]


def mse(prediction: Array, target: Array) -> tuple[Array, Array]:
    """Mean of squared errors, mean((p - t)^2), with gradient 2 (p - t) / n."""
    xp = _matching(prediction, target).xp
    error = prediction - target
    loss = xp.mean(error * error)
    error *= 2.0 / error.size
    return loss, error


def sse(prediction: Array, target: Array) -> tuple[Array, Array]:
    """Sum of squared errors, sum((p - t)^2), with gradient 2 (p - t)."""
    xp = _matching(prediction, target).xp
    error = prediction - target
    loss = xp.sum(error * error)
    error *= 2.0
    return loss, error


def bce_with_logits(logits: Array, target: Array) -> tuple[Array, Array]:
    """Binary cross-entropy of sigmoid(logits) in nats, with gradient (sigmoid(z) - t) / n.

    Written as mean(max(z, 0) - z t + log(1 + exp(-|z|))), which is finite for every z. Targets lie in [0, 1]:
    labels are 0 or 1, and shades between (a grey pixel) are probabilities. Raises ValueError for targets outside,
    as far as they can be read for free (on the host; `fit` checks on every backend).
    """
    b = _matching(logits, target)
    _check_unit(b, target, "target")
    xp = b.xp
    e = xp.exp(-xp.abs(logits))
    loss = xp.mean(xp.maximum(logits, 0.0) - logits * target + xp.log1p(e))
    gradient = xp.where(logits >= 0, 1.0, e) / (1.0 + e)
    gradient -= target
    gradient *= 1.0 / gradient.size
    return loss, gradient


def bce(probability: Array, target: Array, *, clip: float = 1e-7) -> tuple[Array, Array]:
    """Binary cross-entropy in nats of probabilities that a sigmoid has already made, mean(-t log p - (1-t) log(1-p)).

    p is kept inside [clip, 1 - clip], so the loss stays finite; 1e-7 is the smallest useful clip in float32, where
    1 - 1e-9 equals 1. Gradient (p - t) / (p (1 - p)) / n at the clipped p. Prefer `bce_with_logits` for training.
    Raises ValueError for targets, or probabilities, outside [0, 1] (on the host, where reading is free).
    """
    if not 1e-7 <= clip < 0.5:
        raise ValueError(f"clip must be from 1e-7 to below 0.5, not {clip}; smaller ones vanish in float32")
    b = _matching(probability, target)
    _check_unit(b, target, "target")
    _check_unit(b, probability, "probability", nan_shows=True)
    xp = b.xp
    p = xp.clip(probability, clip, 1.0 - clip)
    loss = -xp.mean(target * xp.log(p) + (1.0 - target) * xp.log1p(-p))
    gradient = (p - target) / (p * (1.0 - p))
    gradient *= 1.0 / gradient.size
    return loss, gradient


LOSSES: dict[str, Loss] = {"mse": mse, "sse": sse, "bce_with_logits": bce_with_logits, "bce": bce}
UNIT_TARGETS = ("bce_with_logits", "bce")  # their targets are probabilities


def loss_by_name(name: str) -> Loss:
    """The loss called `name`. Raises UnknownName."""
    if name not in LOSSES:
        raise UnknownName("loss", name, LOSSES)
    return LOSSES[name]


def check_same_shape(prediction: Array, target: Array) -> None:
    """Raise ShapeError unless both shapes are the same, with rows; (n, 1) against (n,) would become (n, n)."""
    if prediction.shape != target.shape:
        raise ShapeError(
            f"prediction has shape {prediction.shape}, target has shape {target.shape}; they must be equal "
            "(a target of one column is made with target.reshape(-1, 1))"
        )
    if 0 in prediction.shape:
        raise ShapeError(f"prediction and target are empty, {prediction.shape}; there is nothing to compare")


def _matching(prediction: Array, target: Array) -> Backend:
    b = backend_of(prediction)
    b.require_home(target=target)
    check_same_shape(prediction, target)
    if prediction.dtype != target.dtype or prediction.dtype.kind != "f":
        raise TypeError(
            f"prediction is {prediction.dtype}, target is {target.dtype}; they must be of one floating type: "
            f'target = backend.asarray(target, dtype="{b.dtype}")'
        )
    return b


def _check_unit(b: Backend, values: Array, name: str, *, nan_shows: bool = False) -> None:
    """nan_shows: NaN makes the loss NaN, which training reports as divergence, so it passes here."""
    if not (b.is_host and values.size):
        return
    low, high = values.min(), values.max()
    if not (low >= 0.0 and high <= 1.0) and not (nan_shows and (low != low or high != high)):
        raise ValueError(f"{name} of a binary cross-entropy must lie in [0, 1]; found {low:g} .. {high:g}")
