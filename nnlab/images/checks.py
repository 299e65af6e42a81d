"""What counts as a picture in nnlab: the one check that every function on pictures makes."""

from __future__ import annotations

import os

import numpy as np

from nnlab.errors import ImageFileError, ShapeError

MAX_PIXELS = 89_478_485  # Pillow's own limit: a quarter of a gigabyte of 24-bit colour


def check_shape(values: np.ndarray, name: str) -> None:
    """Raise ShapeError unless the array is (H, W) or (H, W, 3) with at least one pixel."""
    if values.ndim not in (2, 3) or (values.ndim == 3 and values.shape[2] != 3) or 0 in values.shape:
        raise ShapeError(
            f"{name} must be (height, width) for grey or (height, width, 3) for colour, not {values.shape}; "
            "nnlab never guesses rows, columns or channels, so reshape it first"
        )


def check_image(image: np.ndarray, name: str = "image") -> np.ndarray:
    """The array itself, if it is a picture: uint8 or uint16, (H, W) or (H, W, 3). Raises TypeError, ShapeError."""
    if not isinstance(image, np.ndarray) or image.dtype not in (np.uint8, np.uint16):
        kind = image.dtype if isinstance(image, np.ndarray) else type(image).__name__
        raise TypeError(
            f"{name} must be a uint8 or uint16 array, not {kind}; turn values in [0, 1] into one with from_unit(values)"
        )
    check_shape(image, name)
    return image


def check_size(path: str | os.PathLike[str], height: int, width: int, max_pixels: int | None) -> None:
    """Raise ImageFileError for more pixels than allowed, before memory is taken for them."""
    if max_pixels is not None and height * width > max_pixels:
        raise ImageFileError(
            f"{os.fspath(path)}: {width} x {height} = {width * height:,} pixels, and a small file that claims so many "
            f"may be a trap; the limit is {max_pixels:,}. If you trust it, pass "
            f"max_pixels={width * height} (on the command line --max-pixels {width * height})"
        )
