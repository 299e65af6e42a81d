"""Where the pixels of a picture lie, as a network sees them."""

from __future__ import annotations

import numpy as np

from nnlab.backends import Array, Backend
from nnlab.errors import ShapeError


def pixel_centres(height: int, width: int, *, backend: Backend) -> Array:
    """The centre of every pixel, (height * width, 2), in the backend's home and dtype.

    Column 0 is x, rising to the right; column 1 is y, rising downwards. Row-major, like `image.reshape(-1)`. The
    picture's edges are at -1 and 1, so pixel i of n is centred at (2 i + 1) / n - 1, and one pixel alone at 0; a
    render of another size therefore shows the same area, not shifted. Raises ShapeError for sizes below 1.
    """
    check_sides(height, width)
    return backend.asarray(centres_of(0, height * width, height, width, str(backend.dtype)))


def centres_of(start: int, stop: int, height: int, width: int, dtype: str) -> np.ndarray:
    """Pixel centres number `start` to `stop` - 1 on the host, computed in float64 and then rounded once."""
    number = np.arange(start, stop)
    centres = np.empty((stop - start, 2), dtype)
    centres[:, 0] = (2.0 * (number % width) + 1.0) / width - 1.0
    centres[:, 1] = (2.0 * (number // width) + 1.0) / height - 1.0
    return centres


def check_sides(height: int, width: int) -> None:
    """Raise ShapeError unless both are whole numbers from 1."""
    if any(isinstance(side, bool) or int(side) != side or side < 1 for side in (height, width)):
        raise ShapeError(f"height and width must be whole numbers from 1, not {height!r} and {width!r}")
