"""`nnlab execute`: run the lessons and save what they show."""

from __future__ import annotations

import argparse

HELP = "run lessons and save their outputs, the same bytes each time"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lessons", nargs="*", help="numbers (01) or files (notebooks/01_....ipynb); none means all")
    parser.add_argument("--check", action="store_true", help="save nothing; fail if a run would change a file")


def run(arguments: argparse.Namespace) -> int:
    from nnlab.lessons.execute import execute_all, find

    changed = execute_all(find(arguments.lessons), save=not arguments.check)
    return int(arguments.check and bool(changed))
