"""What several commands about pictures and networks share: readers of arguments, and checks of paths."""

from __future__ import annotations

import argparse
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
    levels = [int(part) for part in text.split(",")]
    return levels[0] if len(levels) == 1 else levels


def check_paths(source: str, target: str) -> None:
    """Raise FileNotFoundError without a source, ImageFileError where the target would overwrite it."""
    from nnlab.errors import ImageFileError

    if not os.path.exists(source):
        raise FileNotFoundError(f"{source}: there is no such file; check the name and the folder you are in")
    if os.path.exists(target) and os.path.samefile(source, target):
        raise ImageFileError(f"{target}: is the input itself; give the output another name")


def size(text: str) -> tuple[int, ...]:
    """200 (the longest side), or 120x300 (height x width)."""
    parts = tuple(int(part) for part in text.lower().split("x"))
    if len(parts) > 2 or min(parts) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a size; write 200 (the longest side) or 120x300 (HxW)")
    return parts


def widths(text: str) -> list[int]:
    """128,128,128: the widths of the hidden layers."""
    parts = [int(part) for part in text.split(",")]
    if min(parts) < 1:
        raise argparse.ArgumentTypeError(f"{text}: every layer needs at least one unit")
    return parts


def count(text: str) -> int:
    """A whole number from 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1")
    return number
