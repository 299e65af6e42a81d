"""Reading a picture without losing a bit."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
import png
from PIL import Image, UnidentifiedImageError

from nnlab.errors import ImageFileError
from nnlab.images import png_file
from nnlab.images.checks import MAX_PIXELS, check_size
from nnlab.images.lossless import reason_for_loss

ORIENTATION = 0x0112  # EXIF tag
_DAMAGE = (OSError, SyntaxError, ValueError, EOFError, IndexError, struct.error, zlib.error, png.Error)


def read_image(
    path: str | os.PathLike[str],
    *,
    background: int | Sequence[int] = 255,
    max_pixels: int | None = MAX_PIXELS,
    frame: int | None = None,
) -> np.ndarray:
    """The pixels of any picture that Pillow can read: uint8 or uint16, (H, W) for grey and (H, W, 3) for colour.

    Row 0 is the top row, column 0 the left one, after turning the picture as its EXIF orientation says.
    Every bit of 8- and 16-bit grey and colour is kept. 1-bit pictures become 0 and 255; palette indices become colours.
    Transparent pixels are laid over `background`: one level or three, from 0 (black) to 255 (white) also for 16 bits.
    Colour profiles and gamma are left aside: the numbers are the file's own.

    max_pixels: larger pictures are refused before they are decoded; None allows any size.
    frame: which picture of an animation or of a file with several pages.
    Raises FileNotFoundError, and ImageFileError for what is damaged, too large, or would lose something.
    """
    name = os.fspath(path)
    level = _background(background)
    with open(path, "rb") as file:
        try:
            pixels, alpha, orientation = _decode(name, file, max_pixels, frame)
        except (ImageFileError, MemoryError):
            raise
        except UnidentifiedImageError:
            raise ImageFileError(f"{name}: not a picture, or of a kind that Pillow cannot read") from None
        except _DAMAGE as error:
            raise ImageFileError(f"{name}: damaged ({error}); get a fresh copy of the file") from error
    if alpha is not None:
        pixels = _composite(name, pixels, alpha, level)
    return np.ascontiguousarray(_turn(pixels, orientation))


def _decode(
    name: str, file: BinaryIO, max_pixels: int | None, frame: int | None
) -> tuple[np.ndarray, np.ndarray | None, int]:
    """Pixels, alpha where there is one, and the EXIF orientation."""
    header = None
    if file.read(8) == png_file.SIGNATURE:
        header = png_file.read_header(file)
        check_size(name, header.height, header.width, max_pixels)
        if header.needs_pypng:
            return *png_file.read_pixels(file), header.orientation
    file.seek(0)
    with _no_pillow_limit(), Image.open(file) as image:
        check_size(name, image.height, image.width, max_pixels)
        _choose_frame(name, image, frame)
        if reason := reason_for_loss(image, file):
            raise ImageFileError(f"{name}: {reason}; convert it to a PNG with a program that keeps them")
        orientation = header.orientation if header else int(image.getexif().get(ORIENTATION, 1))
        return *_samples(image), orientation


@contextmanager
def _no_pillow_limit() -> Iterator[None]:
    """Pillow warns at one size and refuses at twice that; nnlab's own check has already said yes or no."""
    limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
    try:
        yield
    finally:
        Image.MAX_IMAGE_PIXELS = limit


def _choose_frame(name: str, image: Image.Image, frame: int | None) -> None:
    frames = getattr(image, "n_frames", 1)
    if frame is None and frames > 1 and image.format != "MPO":  # MPO: a photograph, and after it a preview of it
        raise ImageFileError(
            f"{name}: holds {frames} pictures; choose one with frame=0 to frame={frames - 1} (--frame)"
        )
    if frame is not None and not 0 <= frame < frames:
        raise ImageFileError(f"{name}: has no frame {frame}; it holds {frames}, counted from 0")
    image.seek(frame or 0)


def _samples(image: Image.Image) -> tuple[np.ndarray, np.ndarray | None]:
    """Decode: whole-number pixels and alpha. Palettes become colours here."""
    if image.mode.startswith("I"):
        return np.asarray(image).astype(np.uint16), None
    grey = image.mode in ("1", "L", "LA")
    if not image.has_transparency_data:
        return np.asarray(image.convert("L" if grey else "RGB")), None
    samples = np.asarray(image.convert("LA" if grey else "RGBA"))
    return (samples[..., 0] if grey else samples[..., :3]), samples[..., -1]


def _background(background: int | Sequence[int]) -> np.ndarray:
    level: np.ndarray = np.asarray(background)
    if level.shape not in ((), (3,)) or level.dtype.kind not in "iu" or (level < 0).any() or (level > 255).any():
        raise ValueError(f"background must be one whole number from 0 to 255, or three, not {background!r}")
    return level.astype(np.uint64)


def _composite(name: str, pixels: np.ndarray, alpha: np.ndarray, level: np.ndarray) -> np.ndarray:
    """Pixels over the background, rounded to the nearest level: (p · a + background · (top − a)) / top."""
    if pixels.ndim == 2 and level.ndim:
        raise ImageFileError(f"{name}: grey with transparency; give the background as one number, not three")
    top = int(np.iinfo(pixels.dtype).max)
    level = level * (top // 255)
    result: Any = np.empty_like(pixels)
    for row in range(len(pixels)):  # a row at a time, for the sake of memory
        a = alpha[row].astype(np.uint64)
        a = a if pixels.ndim == 2 else a[:, None]
        result[row] = (pixels[row] * a + level * (top - a) + top // 2) // top
    return np.asarray(result)


def _turn(pixels: np.ndarray, orientation: int) -> np.ndarray:
    """The picture upright, by its EXIF orientation (1 to 8; anything else counts as upright)."""
    if orientation in (5, 6, 7, 8):
        pixels = pixels.swapaxes(0, 1)
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    return pixels
