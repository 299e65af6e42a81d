"""`nnlab render CKPT OUT.png`: what a trained network draws, at any size."""

from __future__ import annotations

import argparse

from nnlab.commands.encode import report
from nnlab.commands.options import check_paths, size

HELP = "draw a trained network's picture at any size"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", metavar="CKPT", help="a file that nnlab train wrote")
    parser.add_argument("picture", metavar="OUT.png")
    parser.add_argument("--size", type=size, help="the longest side, or HxW; without it, the size it was trained at")
    parser.add_argument("--depth", type=int, choices=(8, 16), default=8, help="bits a sample (%(default)s)")
    parser.add_argument("--backend", default="numpy", help="numpy, sim or cupy (%(default)s)")
    parser.add_argument("--json", action="store_true", help="print what was written as JSON")


def run(arguments: argparse.Namespace) -> int:
    import nnlab
    from nnlab.commands.painting import notes_of, paint, sides
    from nnlab.images import from_unit, write_image
    from nnlab.images.writing import check_name
    from nnlab.training import load_checkpoint

    check_paths(arguments.checkpoint, arguments.picture)
    check_name(arguments.picture)
    state = load_checkpoint(arguments.checkpoint, backend=nnlab.backend(arguments.backend))
    notes = notes_of(state, arguments.checkpoint)
    trained = notes["height"], notes["width"]
    image = from_unit(paint(state.model, *sides(arguments.size or trained, *trained)), arguments.depth)
    write_image(arguments.picture, image)
    report(arguments.picture, image.shape, image.itemsize, as_json=arguments.json)
    return 0
