"""`nnlab test`: set up what is missing, then run every notebook and every test."""

from __future__ import annotations

import argparse
import os

from nnlab.bootstrap import environment
from nnlab.bootstrap.clone import Clone
from nnlab.bootstrap.run import start

HELP = "set everything up and run every lesson and every test; other arguments go to pytest"
PASSES_ON = True

# Notebooks are compared with their stored outputs, in this Python whatever kernel they name.
# They stand here and not in pyproject.toml, so that plain `pytest tests` runs without Jupyter.
NOTEBOOK_OPTIONS = (
    "--nbval",
    "--nbval-current-env",
    "--nbval-sanitize-with=tests/nbval_sanitize.cfg",
    "--nbval-cell-timeout=120",
)
WITHOUT_SLOW = ("-m", "not slow")  # every slow test has a faster one of the same promise beside it
EVERYTHING = ("tests", "notebooks")
_TAKE_A_VALUE = {"-k", "-m", "-p", "-o", "-W"}  # the argument after one of these is no path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-gpu", action="store_true", help="do not look for an NVIDIA GPU, do not add CuPy")


def run(arguments: argparse.Namespace) -> int:
    clone = Clone.here()
    os.environ["NNLAB_PROGRESS"] = "off"  # on a slow machine a bar would appear among the outputs that are compared
    python = environment.ready_python(clone, "lab", "test", with_gpu=not arguments.no_gpu)
    return start(clone, python, ["-m", "pytest", *pytest_arguments(clone, arguments.rest)], folder=clone.root)


def pytest_arguments(clone: Clone, given: list[str]) -> list[str]:
    """What pytest is called with: everything is run unless files, folders or tests are named, or markers chosen."""
    names_paths = any(
        before not in _TAKE_A_VALUE and (clone.root / argument.split("::")[0]).exists()
        for before, argument in zip(["", *given], given, strict=False)
    )
    chosen = () if "-m" in given else WITHOUT_SLOW
    return [*NOTEBOOK_OPTIONS, *chosen, *given, *(() if names_paths else EVERYTHING)]
