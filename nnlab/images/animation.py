"""A time-lapse as one file: GIF for everywhere, APNG (an animated .png) where every bit counts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from nnlab.backends import on_host
from nnlab.errors import ImageFileError, ShapeError
from nnlab.files import atomic_write
from nnlab.images.checks import check_image

FORMATS = {".gif": "GIF", ".png": "PNG", ".apng": "PNG"}


def write_animation(
    path: str | os.PathLike[str], frames: Sequence[np.ndarray], *, seconds: float = 0.1, hold: float = 2.0
) -> None:
    """Write uint8 pictures of one shape, (H, W) or (H, W, 3), as an endless animation: .gif, .png or .apng.

    seconds: how long each frame stays; hold: how long the last one does. A GIF holds grey exactly, and 256 colours
    of a colour picture; an APNG holds all. Frames equal to the one before are merged into it.
    The file appears whole or not at all. Raises ImageFileError for another ending, TypeError, ShapeError, ValueError.
    """
    kind = check_animation_name(path)
    if not frames:
        raise ShapeError("there is no frame to write")
    frames = [on_host(frame) for frame in frames]
    for frame in frames:
        check_image(frame, "frame")
        if frame.dtype != np.uint8:
            raise TypeError(f"frames must be uint8, not {frame.dtype}; use from_unit(values)")
        if frame.shape != frames[0].shape:
            raise ShapeError(f"frames must have one shape, not {frames[0].shape} and {frame.shape}")
    if not (seconds > 0 and hold > 0):
        raise ValueError(f"seconds and hold must be above 0, not {seconds} and {hold}")
    times = [round(1000 * seconds)] * (len(frames) - 1) + [round(1000 * hold)]
    first, *others = (Image.fromarray(frame) for frame in frames)
    with atomic_write(path) as file:
        first.save(file, format=kind, save_all=True, append_images=others, duration=times, loop=0)


def check_animation_name(path: str | os.PathLike[str]) -> str:
    """Pillow's name of the format that the file's ending asks for. Raises ImageFileError for one that cannot move."""
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise ImageFileError(f"{os.fspath(path)}: an animation is a .gif, .png or .apng file")
    return FORMATS[suffix]
