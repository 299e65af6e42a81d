"""Commands that need packages run in the clone's own environment when the Python that was started lacks them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from nnlab.bootstrap.clone import Clone, SetupError
from nnlab.bootstrap.environment import is_current
from nnlab.bootstrap.requirements import missing, requirements
from nnlab.bootstrap.run import start

SETS_UP_ITSELF = ("lab", "test")


def hand_over(arguments: Sequence[str]) -> None:
    """Start `python -m nnlab <arguments>` in the clone's environment and exit with it, or return where this is right.

    After `python3 -m nnlab lab` has set up .venv, `python3 -m nnlab doctor` so needs no activated environment.
    """
    if arguments and arguments[0] in SETS_UP_ITSELF:
        return
    try:
        clone = Clone.here()
    except SetupError:
        return
    if missing(requirements(clone.root)) and is_current(clone):
        sys.exit(start(clone, clone.python, ["-m", "nnlab", *arguments], folder=Path.cwd()))
