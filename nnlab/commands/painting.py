"""What `train` and `render` agree on: how a picture becomes numbers for a network, and back.

Networks learn ink = 1 - light, from 0 (white paper) to 1 (black). The size and the sum of the pixels travel along in
the checkpoint, as state.extra["picture"].
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nnlab.backends import Backend
from nnlab.errors import CheckpointMismatch
from nnlab.images import constant_image, psnr, read_image, render, resize, to_unit
from nnlab.nn import Sequential
from nnlab.optim import TrainState

METHOD = "bicubic"  # brings pictures to the size they are trained at; when it shrinks one, no detail is skipped


class Picture(NamedTuple):
    """light: float32 in [0, 1], (H, W) or (H, W, 3). notes: what the checkpoint remembers of it."""

    light: np.ndarray
    notes: dict[str, Any]

    def target(self, backend: Backend) -> Any:
        """Ink, a row a pixel: (H * W, channels) in the backend's home and dtype."""
        return backend.asarray((1.0 - self.light).reshape(-1, self.notes["channels"]))


def load_picture(path: str, size: tuple[int, ...], **options: Any) -> Picture:
    """A picture file at the size it is trained at; `size` is (longest side,) or (height, width)."""
    image = read_image(path, **options)
    height, width = sides(size, *image.shape[:2])
    light = resize(to_unit(image).astype(np.float32), height, width, method=METHOD).clip(0.0, 1.0)
    notes = {
        "name": Path(path).name,
        "height": height,
        "width": width,
        "channels": 1 if light.ndim == 2 else 3,
        "values": "ink",
        "range": [0.0, 1.0],
        "pixels": hashlib.sha256(light.tobytes()).hexdigest(),
    }
    return Picture(light, notes)


def sides(size: tuple[int, ...], height: int, width: int) -> tuple[int, int]:
    """(height, width) for a size as given: both sides, or the longest one with the picture's proportions kept."""
    if len(size) == 2:
        return size[0], size[1]
    longest = max(height, width)
    return max(1, round(height * size[0] / longest)), max(1, round(width * size[0] / longest))


def notes_of(state: TrainState, path: str) -> dict[str, Any]:
    """What a checkpoint says about its picture. Raises CheckpointMismatch where it says nothing."""
    notes = state.extra.get("picture")
    if not isinstance(notes, dict) or notes.get("values") != "ink":
        raise CheckpointMismatch(
            f"{path}: this checkpoint has no notes of a picture, as those of nnlab train have; "
            "to draw another network, give nnlab.images.render a function of pixel centres"
        )
    return notes


def paint(model: Sequential, height: int, width: int) -> np.ndarray:
    """The network's picture as light, (H, W) or (H, W, 3): 1 is white; a little beyond [0, 1] in places."""
    ink = render(model, height, width)
    np.subtract(1.0, ink, out=ink)
    return ink


def score(model: Sequential, picture: Picture) -> tuple[float, float]:
    """PSNR in dB on the trained pixels: the network's, and that of the best picture of one colour."""
    height, width = picture.light.shape[:2]
    own = psnr(picture.light, paint(model, height, width), data_range=1.0)
    return own, psnr(picture.light, constant_image(picture.light), data_range=1.0)
