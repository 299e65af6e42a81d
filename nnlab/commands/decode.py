"""`nnlab decode IN.csv OUT.png`: a picture from text that `nnlab encode` wrote."""

from __future__ import annotations

import argparse

from nnlab.commands.encode import report
from nnlab.commands.options import add_size_limit, check_paths, size_limit

HELP = "turn CSV back into a picture without losing a bit"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("csv", metavar="IN.csv", help="a file that nnlab encode wrote")
    parser.add_argument("picture", metavar="OUT.png")
    add_size_limit(parser)
    parser.add_argument("--json", action="store_true", help="print what was written as JSON")


def run(arguments: argparse.Namespace) -> int:
    from nnlab.images import csv_to_image, write_image
    from nnlab.images.writing import check_name

    check_paths(arguments.csv, arguments.picture)
    check_name(arguments.picture)
    image = csv_to_image(arguments.csv, **size_limit(arguments))
    write_image(arguments.picture, image)
    report(arguments.picture, image.shape, image.itemsize, as_json=arguments.json)
    return 0
