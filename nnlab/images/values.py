"""Between whole-number pixels and the unit interval a network works on."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnlab.backends import on_host
from nnlab.images.checks import check_image, check_shape

DEPTHS = (8, 16)
ROWS_AT_ONCE = 64  # in float64, so that a large picture needs little more memory than it has itself


def to_unit(image: np.ndarray) -> np.ndarray:
    """Pixels as float64 in [0, 1]: black 0, white 1.

    image: uint8 or uint16, (H, W) or (H, W, 3); the shape stays. Raises TypeError, ShapeError.
    Ink instead of light is `1 - to_unit(image)`.
    """
    image = on_host(image)
    check_image(image)
    return image / float(np.iinfo(image.dtype).max)


def from_unit(values: Any, depth: int = 8) -> np.ndarray:
    """The nearest uint8 (depth 8) or uint16 (depth 16) pixels for host values in [0, 1].

    values: floats, (H, W) or (H, W, 3). Values outside [0, 1] become black or white, as networks overshoot a little.
    Raises ValueError for NaN or infinite values and for other depths, TypeError for whole numbers, ShapeError.
    """
    values = np.asarray(on_host(values))
    if depth not in DEPTHS:
        raise ValueError(f"depth must be 8 or 16 bits, not {depth!r}")
    if values.dtype.kind != "f":
        raise TypeError(
            f"values must be floats in [0, 1], not {values.dtype}; pixels become floats with to_unit(image)"
        )
    check_shape(values, "values")
    if not np.isfinite(values).all():
        raise ValueError("values hold NaN or infinity, which no pixel can show; look for a run that diverged")
    image = np.empty(values.shape, f"uint{depth}")
    for start in range(0, len(values), ROWS_AT_ONCE):
        part = values[start : start + ROWS_AT_ONCE].astype(np.float64)
        part.clip(0.0, 1.0, out=part)
        part *= 2**depth - 1
        image[start : start + ROWS_AT_ONCE] = np.rint(part, out=part)
    return image
