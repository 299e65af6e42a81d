"""A picture as a text file that a person can read: a header, then a line a pixel.

    nnlab-image,height=2,width=3,channels=3,depth=8
    0,14,28
    ...

Row-major: along the top row from left to right, then the next row. Channel values only, as whole numbers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import BinaryIO, NoReturn

import numpy as np

from nnlab.backends import on_host
from nnlab.errors import ImageFileError
from nnlab.files import atomic_write
from nnlab.images.checks import MAX_PIXELS, check_image, check_size

_HEADER = re.compile(rb"nnlab-image,height=(\d{1,9}),width=(\d{1,9}),channels=([13]),depth=(8|16)\r?\n")
_EXAMPLE = "nnlab-image,height=2,width=3,channels=3,depth=8"
_PIXELS_AT_ONCE = 1 << 16
_BYTES_AT_ONCE = 1 << 20
_LONGEST_LINE = 64  # a good one has at most 19 bytes


def image_to_csv(image: np.ndarray, path: str | os.PathLike[str]) -> None:
    """Write a uint8 or uint16 picture, (H, W) or (H, W, 3), as CSV. Raises TypeError, ShapeError.

    The file appears whole or not at all.
    """
    image = on_host(image)
    check_image(image)
    height, width = image.shape[:2]
    pixels = image.reshape(height * width, -1)
    channels, depth = pixels.shape[1], 8 * image.itemsize
    line = ",".join(["%d"] * channels) + "\n"
    with atomic_write(path) as file:
        file.write(b"nnlab-image,height=%d,width=%d,channels=%d,depth=%d\n" % (height, width, channels, depth))
        for start in range(0, len(pixels), _PIXELS_AT_ONCE):
            part = pixels[start : start + _PIXELS_AT_ONCE]
            file.write(((line * len(part)) % tuple(part.ravel().tolist())).encode("ascii"))


def csv_to_image(path: str | os.PathLike[str], *, max_pixels: int | None = MAX_PIXELS) -> np.ndarray:
    """The picture in a CSV file: uint8 or uint16, (H, W) or (H, W, 3), as its header says.

    max_pixels: larger pictures are refused before memory is taken for them; None allows any size.
    Raises FileNotFoundError, and ImageFileError naming the line where the file is not as it must be.
    """
    with open(path, "rb") as file:
        head = file.readline(_LONGEST_LINE + 1)
        match = _HEADER.fullmatch(head)
        if match is None:
            _refuse(path, 1, f"{_shown(head)} is not the header; it must read like {_EXAMPLE}")
        height, width, channels, depth = map(int, match.groups())
        if height * width == 0:
            _refuse(path, 1, f"height={height}, width={width}; both must be at least 1")
        check_size(path, height, width, max_pixels)
        image = np.empty((height, width) if channels == 1 else (height, width, 3), f"uint{depth}")
        _fill(path, _blocks(file), image.reshape(-1, channels), 2**depth - 1)
    return image


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    """The rest of the file in pieces that end where lines end."""
    while block := file.read(_BYTES_AT_ONCE):
        yield block + file.readline(_LONGEST_LINE)


def _fill(path: str | os.PathLike[str], blocks: Iterator[bytes], pixels: np.ndarray, top: int) -> None:
    count, channels = pixels.shape
    good = re.compile(rb"(?:%s\r?\n)*" % b",".join([rb"\d{1,5}"] * channels))
    done = 0
    for block in blocks:
        if good.fullmatch(block) is None:
            _name_bad_line(path, block, done, channels, top)
        values = np.fromstring(block.replace(b"\r", b"").replace(b"\n", b",").decode("ascii"), dtype=np.int64, sep=",")
        if values.max() > top:
            _name_bad_line(path, block, done, channels, top)
        values = values.reshape(-1, channels)
        if done + len(values) > count:
            _refuse(path, count + 2, f"a line too many: the header promises {count:,} pixels, one a line")
        pixels[done : done + len(values)] = values
        done += len(values)
    if done < count:
        _refuse(
            path, done + 1, f"the file ends after {done:,} of {count:,} pixels; it was cut off, or its header is wrong"
        )


def _name_bad_line(path: str | os.PathLike[str], block: bytes, done: int, channels: int, top: int) -> NoReturn:
    """Find the first line in the block that is not a pixel, and say what is wrong with it."""
    for number, line in enumerate(block.splitlines(keepends=True), start=done + 2):
        fields = line.rstrip(b"\r\n").split(b",")
        if not line.endswith(b"\n") and len(line) < _LONGEST_LINE:
            _refuse(path, number, f"{_shown(line)} has no line end; the file was cut off, or needs one after this line")
        if len(fields) != channels:
            _refuse(path, number, f"{_shown(line)} has {len(fields)} values, but the header says channels={channels}")
        for field in fields:
            if not re.fullmatch(rb"\d{1,5}", field) or int(field) > top:
                _refuse(path, number, f"{_shown(field)} is not a whole number from 0 to {top}")
    raise AssertionError("called for a block of good lines")


def _shown(line: bytes) -> str:
    text = line.rstrip(b"\r\n").decode("utf-8", "replace")
    return repr(text if len(text) <= 40 else text[:40] + "...")


def _refuse(path: str | os.PathLike[str], line: int, why: str) -> NoReturn:
    raise ImageFileError(f"{os.fspath(path)}, line {line}: {why}; write the file again with `nnlab encode`")
