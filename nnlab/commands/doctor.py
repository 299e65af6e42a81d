"""`nnlab doctor`: look at this machine, and say whether every lesson will run."""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import sys
import textwrap

HELP = "look at this machine and say what works"
_MARKS = {"ok": "ok", "note": "note", "problem": "PROBLEM"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")


def run(arguments: argparse.Namespace) -> int:
    """0 when every lesson will run here, 1 when something must be mended first."""
    from nnlab.commands.checks import all_checks

    found = []
    for check in all_checks():
        found.append(check)
        if not arguments.json:
            print(_lines(_MARKS[check.status], check.name, check.text, check.cure), flush=True)
    problems = [check.name for check in found if check.status == "problem"]
    if arguments.json:
        print(json.dumps({"ready": not problems, "checks": [dataclasses.asdict(check) for check in found]}, indent=2))
    elif not problems:
        print("\nReady: every lesson runs on this machine.")
    if problems:
        print(f"nnlab doctor: mend this first: {', '.join(problems)}", file=sys.stderr)
    return 1 if problems else 0


def _lines(mark: str, name: str, text: str, cure: str) -> str:
    """One finding as a mark, a name and wrapped text, the cure on lines of its own."""
    width = max(60, min(shutil.get_terminal_size().columns, 110))
    indent = " " * 21
    lines = textwrap.wrap(text, width, initial_indent=f"{mark:<9}{name:<12}", subsequent_indent=indent)
    if cure:
        lines += textwrap.wrap(cure, width, initial_indent=indent + "-> ", subsequent_indent=indent + "   ")
    return "\n".join(lines)
