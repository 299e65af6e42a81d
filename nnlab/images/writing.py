"""Writing a picture as a PNG file, which keeps every bit."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from PIL import Image

from nnlab.backends import on_host
from nnlab.errors import ImageFileError
from nnlab.files import atomic_write
from nnlab.images.checks import check_image
from nnlab.images.png_file import write_colour_16


def write_image(path: str | os.PathLike[str], image: np.ndarray) -> None:
    """Write a uint8 or uint16 picture, (H, W) or (H, W, 3), as a PNG file of the same depth.

    The file appears whole or not at all. Raises TypeError, ShapeError, and ImageFileError for a name that asks for
    another format.
    """
    image = on_host(image)
    check_image(image)
    check_name(path)
    with atomic_write(path) as file:
        if image.dtype == np.uint16 and image.ndim == 3:
            write_colour_16(file, image)
        else:
            Image.fromarray(image).save(file, format="PNG")


def check_name(path: str | os.PathLike[str]) -> None:
    """Raise ImageFileError unless the file's name ends in .png."""
    if Path(path).suffix.lower() != ".png":
        raise ImageFileError(f"{os.fspath(path)}: nnlab writes PNG only, which keeps every bit; end the name in .png")
