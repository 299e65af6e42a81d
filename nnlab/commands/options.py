"""What several commands about pictures and networks share: readers of arguments, and checks of paths."""

from __future__ import annotations

import argparse
import math
import os
from typing import Any


def add_picture_options(parser: argparse.ArgumentParser) -> None:
    """The options of whatever reads a picture file."""
    parser.add_argument(
        "--background",
        type=level,
        default=255,
        metavar="LEVEL",
        help="what shows through transparent pixels: one level or R,G,B, from 0 (black) to 255 (white, the default)",
    )
    parser.add_argument("--frame", type=int, metavar="N", help="which picture of an animation, from 0")
    add_size_limit(parser)


def add_size_limit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-pixels", type=int, metavar="N", help="allow so many pixels, where a file claims an unusual number"
    )


def picture_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The same as keywords of `read_image`."""
    return {"background": arguments.background, "frame": arguments.frame} | size_limit(arguments)


def size_limit(arguments: argparse.Namespace) -> dict[str, Any]:
    return {} if arguments.max_pixels is None else {"max_pixels": arguments.max_pixels}


def level(text: str) -> int | list[int]:
    """255, or 255,240,200."""
    parts = text.split(",")
    if len(parts) not in (1, 3) or not all(part.isdecimal() and int(part) <= 255 for part in parts):
        raise argparse.ArgumentTypeError(f"{text} is no level; write 255, or R,G,B as in 255,240,200")
    levels = [int(part) for part in parts]
    return levels[0] if len(levels) == 1 else levels


def check_paths(source: str, *targets: str) -> None:
    """Raise OSError for a source that is no file or a target that cannot be one, ImageFileError where they are one."""
    from nnlab.errors import ImageFileError
    from nnlab.files import check_target

    if not os.path.exists(source):
        raise FileNotFoundError(f"{source}: there is no such file; check the name and the folder you are in")
    if os.path.isdir(source):
        raise IsADirectoryError(f"{source}: is a folder; name a file in it")
    for target in targets:
        check_target(target)
        if os.path.exists(target) and os.path.samefile(source, target):
            raise ImageFileError(f"{target}: is the input itself; give the output another name")


def size(text: str) -> tuple[int, ...]:
    """200 (the longest side), or 120x300 (height x width)."""
    parts = text.lower().split("x")
    if len(parts) > 2 or not all(_from_1(part) for part in parts):
        raise argparse.ArgumentTypeError(f"{text} is not a size; write 200 (the longest side) or 120x300 (HxW)")
    return tuple(int(part) for part in parts)


def widths(text: str) -> list[int]:
    """128,128,128: the widths of the hidden layers."""
    parts = text.split(",")
    if not all(_from_1(part) for part in parts):
        raise argparse.ArgumentTypeError(f"{text}: write the units of each layer, at least one, as in 128,128,128")
    return [int(part) for part in parts]


def count(text: str) -> int:
    """A whole number from 1."""
    if not _from_1(text):
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1")
    return int(text)


def seed(text: str) -> int:
    """A whole number from 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 0")
    return int(text)


def positive(text: str) -> float:
    """A finite number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0.0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number; write one like 0.001")
    return number


def _from_1(text: str) -> bool:
    return text.isdecimal() and int(text) >= 1
