"""Small pictures inside a recording: PNG of a few shades, as text."""

from __future__ import annotations

import base64
import io

import numpy as np
from PIL import Image

GREYS = 16


def encode(picture: np.ndarray) -> str:
    """A grey picture, (H, W) from 0, black, to 1, white, as a PNG of GREYS shades in base64; clipped first."""
    shades = np.rint(picture.clip(0.0, 1.0) * (GREYS - 1)).astype(np.uint8)
    indexed = Image.fromarray(shades).convert("P")
    indexed.putpalette([255 * shade // (GREYS - 1) for shade in range(GREYS) for _ in "rgb"])
    file = io.BytesIO()
    indexed.save(file, format="PNG", optimize=True, bits=4)
    return base64.b64encode(file.getvalue()).decode()


def decode(text: str) -> np.ndarray:
    """The picture of `encode`: (H, W), float64 from 0, black, to 1, white."""
    with Image.open(io.BytesIO(base64.b64decode(text))) as picture:
        grey: np.ndarray = np.asarray(picture.convert("L")) / 255.0
    return grey
