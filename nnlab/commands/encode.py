"""`nnlab encode IN.png OUT.csv`: a picture as text, a line a pixel."""

from __future__ import annotations

import argparse
import json

from nnlab.commands.options import add_picture_options, check_paths, picture_options

HELP = "turn a picture into CSV without losing a bit"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("picture", metavar="IN.png", help="any picture that Pillow can read")
    parser.add_argument("csv", metavar="OUT.csv")
    add_picture_options(parser)
    parser.add_argument("--json", action="store_true", help="print what was written as JSON")


def run(arguments: argparse.Namespace) -> int:
    from nnlab.images import image_to_csv, read_image

    check_paths(arguments.picture, arguments.csv)
    if not arguments.csv.lower().endswith(".csv"):
        raise ValueError(f"{arguments.csv}: encode writes CSV; end the name in .csv")
    image = read_image(arguments.picture, **picture_options(arguments))
    image_to_csv(image, arguments.csv)
    report(arguments.csv, image.shape, image.itemsize, as_json=arguments.json)
    return 0


def report(path: str, shape: tuple[int, ...], itemsize: int, *, as_json: bool) -> None:
    """Print what has been written where."""
    height, width, channels, depth = *shape[:2], 3 if len(shape) == 3 else 1, 8 * itemsize
    if as_json:
        print(json.dumps({"path": path, "height": height, "width": width, "channels": channels, "depth": depth}))
    else:
        print(f"{path}: {height} rows x {width} columns, {'colour' if channels == 3 else 'grey'}, {depth} bits")
