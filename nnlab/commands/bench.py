"""`nnlab bench`: time training steps of nnlab's engines and of every peer that is installed, in turns."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

HELP = "time training steps of nnlab's engines and of every framework installed here, in turns"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", choices=("cpu", "gpu"), help="where; without it, the GPU if there is one")
    parser.add_argument("--job", action="append", metavar="NAME", help="which network, again for more; none means all")
    parser.add_argument("--only", action="append", metavar="WORD", help="only those with this word in their names")
    parser.add_argument("--rounds", type=int, default=7, help="turns each has (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write everything measured there")
    parser.add_argument("--chart", metavar="FILE.png", help="draw the training steps there")


def run(arguments: argparse.Namespace) -> int:
    from nnlab.bootstrap.clone import Clone
    from nnlab.files import check_target

    targets = [Path(path) for path in (arguments.json, arguments.chart) if path is not None]
    for path in targets:
        check_target(path)
    if len({path.resolve() for path in targets}) < len(targets):
        raise ValueError(f"{arguments.chart}: is named by --json and by --chart; give one of them another name")

    sys.path.insert(0, str(Clone.here().root))  # the benchmarks lie beside the package, in the clone
    from benchmarks.steps.main import bench

    return bench(
        device=arguments.device,
        jobs=arguments.job,
        only=arguments.only,
        rounds=arguments.rounds,
        json_file=None if arguments.json is None else Path(arguments.json),
        chart_file=None if arguments.chart is None else Path(arguments.chart),
    )
