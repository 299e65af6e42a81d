"""How close a picture comes to the true one, always with the range of values said and never guessed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nnlab.backends import on_host
from nnlab.errors import ShapeError

Range = float | tuple[float, float]
WINDOW, SIGMA = 11, 1.5  # pixels, as in Wang et al. (2004)


def psnr(truth: Any, estimate: Any, *, data_range: Range) -> float:
    """Peak signal-to-noise ratio in dB: 10 log10(range^2 / mean((truth - estimate)^2)); inf for equal pictures.

    truth, estimate: host arrays of one shape; whole numbers are compared as numbers, not as bytes that wrap round.
    data_range: the largest possible value (1.0, 255), for values from 0, or (lowest, highest), as in (-1, 1).
    Estimates outside it are clipped first, as on paper or on a screen. Judge the number beside that of
    `constant_image(truth)`. Raises ShapeError; ValueError for a truth outside the range, and for NaN.
    """
    reference, picture, span = _pair(truth, estimate, data_range)
    error = float(np.mean((reference - picture) ** 2))
    return math.inf if error == 0.0 else 10.0 * math.log10(span * span / error)


def ssim(truth: Any, estimate: Any, *, data_range: Range) -> float:
    """Structural similarity, at most 1: whether small neighbourhoods agree in mean, contrast and pattern.

    Wang, Bovik, Sheikh and Simoncelli, Image quality assessment, IEEE TIP 13 (2004), eq. 13: an 11 x 11 Gaussian
    window of deviation 1.5, K1 = 0.01, K2 = 0.03, population statistics, the mean over all windows inside the
    picture and over its channels. The same as scikit-image's `structural_similarity(..., gaussian_weights=True,
    use_sample_covariance=False)`. Arguments and errors as for `psnr`; sides are at least 11 pixels.
    """
    x, y, span = _pair(truth, estimate, data_range)
    if x.ndim not in (2, 3) or min(x.shape[:2]) < WINDOW:
        raise ShapeError(f"ssim compares pictures of at least {WINDOW} x {WINDOW} pixels, not {x.shape}")
    mean_x, mean_y = _blur(x), _blur(y)
    variance_x = _blur(x * x) - mean_x**2
    variance_y = _blur(y * y) - mean_y**2
    covariance = _blur(x * y) - mean_x * mean_y
    c1, c2 = (0.01 * span) ** 2, (0.03 * span) ** 2
    likeness = (2 * mean_x * mean_y + c1) * (2 * covariance + c2)
    likeness /= (mean_x**2 + mean_y**2 + c1) * (variance_x + variance_y + c2)
    return float(np.mean(likeness))


def constant_image(truth: np.ndarray) -> np.ndarray:
    """The best picture of one colour: each channel's mean everywhere. float64, of truth's shape (H, W) or (H, W, C).

    Its PSNR is the floor: a network that ends below it has learned nothing.
    """
    values: np.ndarray = np.asarray(on_host(truth), np.float64)
    return np.broadcast_to(values.mean(axis=(0, 1)), values.shape)


def _pair(truth: Any, estimate: Any, data_range: Range) -> tuple[np.ndarray, np.ndarray, float]:
    low, high = data_range if isinstance(data_range, tuple) else (0.0, data_range)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"data_range must be a number above 0, or (lowest, highest), not {data_range!r}")
    x, y = (np.asarray(on_host(picture), np.float64) for picture in (truth, estimate))
    if x.shape != y.shape or x.size == 0:
        raise ShapeError(f"truth has shape {x.shape}, estimate {y.shape}; they must be equal, and hold something")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("truth or estimate holds NaN or infinity")
    if x.min() < low or x.max() > high:
        raise ValueError(
            f"truth runs from {x.min():g} to {x.max():g}, outside data_range {low:g} to {high:g}; "
            "give the range that its values can take, as one number from 0 or as (lowest, highest)"
        )
    return x, y.clip(low, high), float(high - low)


def _blur(values: np.ndarray) -> np.ndarray:
    """Gaussian-weighted means over the windows that lie inside, along rows and then along columns."""
    offsets = np.arange(WINDOW) - WINDOW // 2
    weights = np.exp(-0.5 * (offsets / SIGMA) ** 2)
    weights /= weights.sum()
    for axis in (0, 1):
        inside = values.shape[axis] - WINDOW + 1
        values = sum(
            weight * values.take(range(place, place + inside), axis) for place, weight in enumerate(weights.tolist())
        )
    return values
