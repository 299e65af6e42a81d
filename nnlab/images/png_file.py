"""The PNG files that Pillow would silently reduce: their header, read first, and their pixels, through pypng.

Pillow turns 16-bit colour and 16-bit grey with alpha into 8 bits, and mistakes the transparent value of some grey
pictures. Chunk layout: W3C, Portable Network Graphics, third edition, sections 5 and 11.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import numpy as np
import png
from PIL import Image

SIGNATURE = b"\x89PNG\r\n\x1a\n"
GREY, PALETTE = 0, 3  # colour types; 2 is colour, 4 grey with alpha, 6 colour with alpha


class PngHeader(NamedTuple):
    """Size in pixels, bits a sample, colour type, whether one value stands for transparent (tRNS), EXIF orientation."""

    width: int
    height: int
    depth: int
    colour_type: int
    transparent: bool
    orientation: int

    @property
    def needs_pypng(self) -> bool:
        """Would Pillow lose something?"""
        return (self.depth == 16 and self.colour_type != GREY) or (self.transparent and self.colour_type != PALETTE)


def read_header(file: BinaryIO) -> PngHeader:
    """Walk over the chunks of an open PNG file without decoding pixels. Raises ValueError for a damaged file.

    Every checksum is compared here, because Pillow leaves those of the pixel data out.
    """
    file.seek(len(SIGNATURE))
    size_and_kind: tuple[int, int, int, int] | None = None
    transparent, orientation = False, 1
    for kind, data in _chunks(file):
        if kind == b"IHDR":
            size_and_kind = struct.unpack(">IIBB", data[:10])
        elif kind == b"eXIf":
            exif = Image.Exif()
            exif.load(data)
            orientation = int(exif.get(0x0112, 1))
        transparent |= kind == b"tRNS"
    if size_and_kind is None or 0 in size_and_kind[:2]:
        raise ValueError("its header gives no size")
    return PngHeader(*size_and_kind, transparent, orientation)


def _chunks(file: BinaryIO) -> Iterator[tuple[bytes, bytes]]:
    kind = b""
    while kind != b"IEND":
        start = file.read(8)
        size, kind = struct.unpack(">I4s", start) if len(start) == 8 else (0, b"")
        data, checksum = file.read(size), file.read(4)
        if len(checksum) < 4:
            raise ValueError("it ends too early")
        if zlib.crc32(data, zlib.crc32(kind)) != int.from_bytes(checksum, "big"):
            raise ValueError(f"the checksum of its {kind.decode('latin-1')} chunk is wrong")
        yield kind, data


def read_pixels(file: BinaryIO) -> tuple[np.ndarray, np.ndarray | None]:
    """Pixels of an open PNG file of any depth, colour type 0, 2, 4 or 6, and their alpha where it has one.

    Both are uint8 or uint16, scaled to the full range of their type: (H, W) or (H, W, 3), and (H, W).
    """
    file.seek(0)
    width, height, rows, info = png.Reader(file=file).read()
    dtype = np.uint16 if info["bitdepth"] == 16 else np.uint8
    samples = np.empty((height, width, info["planes"]), dtype)
    for target, row in zip(samples, rows, strict=True):
        target[...] = np.frombuffer(row, dtype).reshape(width, -1)
    colours = samples[..., :-1] if info["alpha"] else samples
    alpha = samples[..., -1] if info["alpha"] else None
    if "transparent" in info:
        opaque = (samples != np.asarray(info["transparent"], dtype)).any(axis=-1)
        alpha = opaque.astype(dtype) * np.iinfo(dtype).max
    if info["bitdepth"] < 8:
        colours = colours * np.uint8(255 // (2 ** info["bitdepth"] - 1))
    return (colours[..., 0] if colours.shape[-1] == 1 else colours), alpha


def write_colour_16(file: BinaryIO, image: np.ndarray) -> None:
    """Write a uint16 picture of shape (H, W, 3) as a PNG file."""
    height, width, _ = image.shape
    png.Writer(width=width, height=height, bitdepth=16, greyscale=False).write(file, image.reshape(height, -1))
