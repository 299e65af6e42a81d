"""Other sizes without a network, to compare a network's renders with."""

from __future__ import annotations

import numpy as np
from PIL import Image

from nnlab.backends import on_host
from nnlab.errors import UnknownName
from nnlab.images.checks import check_shape
from nnlab.images.coordinates import check_sides

METHODS = {
    "nearest": Image.Resampling.NEAREST,  # the pixel under each new centre
    "bicubic": Image.Resampling.BICUBIC,  # a smooth curve through 4 x 4 pixels; through all it covers when shrinking
    "mean": Image.Resampling.BOX,  # the mean of the area each new pixel covers: for smaller sizes
}


def resize(picture: np.ndarray, height: int, width: int, *, method: str) -> np.ndarray:
    """The picture at another size, by Pillow; the dtype stays.

    picture: (H, W) or (H, W, 3), uint8, uint16 or floats; computed in float32. method: "nearest", "bicubic" or
    "mean". Bicubic curves overshoot beside edges: whole numbers are clipped to their type, floats are left as they
    are. Raises ShapeError, UnknownName.
    """
    picture = on_host(picture)
    check_shape(picture, "picture")
    check_sides(height, width)
    if method not in METHODS:
        raise UnknownName("resize method", method, METHODS)
    channels = np.moveaxis(picture.astype(np.float32), 2, 0) if picture.ndim == 3 else [picture.astype(np.float32)]
    resized = [np.asarray(Image.fromarray(channel).resize((width, height), METHODS[method])) for channel in channels]
    result: np.ndarray = np.stack(resized, axis=-1) if picture.ndim == 3 else resized[0]
    if picture.dtype.kind in "iu":
        result = np.rint(result).clip(0, np.iinfo(picture.dtype).max)
    return result.astype(picture.dtype)
