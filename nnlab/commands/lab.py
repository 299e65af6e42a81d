"""`nnlab lab`: set up what is missing, and open the learner's copy of the lessons in JupyterLab."""

from __future__ import annotations

import argparse

from nnlab.bootstrap import course, environment
from nnlab.bootstrap.clone import Clone
from nnlab.bootstrap.installer import say
from nnlab.bootstrap.run import start

HELP = "set everything up and open the lessons in JupyterLab; other arguments go to JupyterLab"
PASSES_ON = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--fresh",
        metavar="NN",
        action="append",
        default=[],
        help="start lesson NN anew; your version is kept in my-course/backups",
    )
    parser.add_argument("--no-gpu", action="store_true", help="do not look for an NVIDIA GPU, do not add CuPy")


def run(arguments: argparse.Namespace) -> int:
    clone = Clone.here()
    opened: list[str] = []
    for lesson in arguments.fresh:
        restored, backup = course.restore(clone, lesson)
        kept = f"; your version is {backup.relative_to(clone.root)}" if backup else ""
        say(f"{restored.relative_to(clone.root)} is fresh{kept}")
        opened = [restored.name]
    copied = course.copy_missing(clone)
    if not opened:  # a newcomer starts at the first lesson, everyone else where they stopped
        opened = [path.name for path in copied if path.name.startswith("00_")]
    python = environment.ready_python(clone, "lab", with_gpu=not arguments.no_gpu)
    say(f"Opening {clone.course.name}/ in JupyterLab. Stop it with Ctrl-C here.")
    return start(clone, python, ["-m", "jupyterlab", *arguments.rest, *opened], folder=clone.course)
