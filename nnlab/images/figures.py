"""Pictures made of pictures, as arrays: side by side, the difference, a strip of frames."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nnlab.backends import on_host
from nnlab.errors import ShapeError
from nnlab.images.checks import check_shape


def side_by_side(pictures: Sequence[np.ndarray], *, columns: int | None = None, gap: int = 8) -> np.ndarray:
    """Pictures of one size in a row, or row by row in `columns` columns, with white gaps of `gap` pixels between.

    pictures: (H, W) or (H, W, 3), all of one dtype: uint8, uint16, or floats with white = 1. Grey ones become
    colour where any is colour. Places left over stay white. Raises ShapeError where sizes or dtypes differ.
    """
    if not pictures:
        raise ShapeError("there is no picture to show")
    pictures = [on_host(picture) for picture in pictures]
    for picture in pictures:
        check_shape(picture, "picture")
    kinds = {(picture.shape[:2], picture.dtype.name) for picture in pictures}
    if len(kinds) > 1:
        raise ShapeError(f"pictures differ in size or dtype: {sorted(kinds)}; bring them together with resize(...)")
    columns = len(pictures) if columns is None else columns
    if columns < 1 or gap < 0:
        raise ValueError(f"columns must be at least 1 and gap at least 0, not {columns} and {gap}")
    height, width = pictures[0].shape[:2]
    rows = -(-len(pictures) // columns)
    colour = (3,) if any(picture.ndim == 3 for picture in pictures) else ()
    dtype = pictures[0].dtype
    white = 1.0 if dtype.kind == "f" else np.iinfo(dtype).max
    sheet = np.full((rows * (height + gap) - gap, columns * (width + gap) - gap, *colour), white, dtype)
    for place, picture in enumerate(pictures):
        top, left = (place // columns) * (height + gap), (place % columns) * (width + gap)
        spread = picture[..., None] if colour and picture.ndim == 2 else picture
        sheet[top : top + height, left : left + width] = spread
    return sheet


def difference(truth: np.ndarray, estimate: np.ndarray) -> np.ndarray:
    """Where an estimate in [0, 1] is off: 0.5 (mid-grey) where it is right, lighter where too light, darker else.

    float64 in [0, 1], (H, W) or (H, W, 3): 0.5 + (estimate - truth) / 2, the estimate clipped. Raises ShapeError.
    """
    truth, estimate = on_host(truth), on_host(estimate)
    check_shape(truth, "truth")
    if truth.shape != estimate.shape:
        raise ShapeError(f"truth has shape {truth.shape}, estimate {estimate.shape}; they must be equal")
    result: np.ndarray = 0.5 + (np.clip(estimate, 0.0, 1.0).astype(np.float64) - truth) / 2.0
    return result
