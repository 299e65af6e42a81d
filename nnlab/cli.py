"""The command line. Each command is one module in `nnlab.commands`.

A command module has HELP (a line), `add_arguments(parser)` and `run(arguments) -> int` (the exit status), and imports
nothing heavy at the top. PASSES_ON = True: arguments it does not know are allowed and arrive as `arguments.rest`.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

import nnlab

COMMANDS = ("lab", "test", "doctor", "execute", "encode", "decode", "record", "train", "render", "bench")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns 0 only when the job was done; errors are one line on stderr with the cure."""
    parser, commands = build_parser()
    arguments, rest = parser.parse_known_args(argv)
    if arguments.command is None:
        parser.print_help(sys.stderr)
        return 2
    module = importlib.import_module(f"nnlab.commands.{arguments.command}")
    if rest and not getattr(module, "PASSES_ON", False):
        commands[arguments.command].error(f"unrecognized arguments: {' '.join(rest)}")
    arguments.rest = rest
    try:
        return int(module.run(arguments))
    except KeyboardInterrupt:
        print(f"nnlab {arguments.command}: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of the output has left, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if arguments.debug:
            traceback.print_exc()
        else:
            print(f"nnlab {arguments.command}: {describe(error)}", file=sys.stderr)
        return 1


class Parser(argparse.ArgumentParser):
    """A parser that needs one line to say what is wrong with a call."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} ({self.prog} --help shows how)\n")


def build_parser() -> tuple[Parser, dict[str, Parser]]:
    """The parser of the whole command line, and the parser of each command by name."""
    parser = Parser(
        prog="nnlab", description="A course on neural networks and GPUs, and its tools.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"nnlab {nnlab.__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands = {}
    for name in COMMANDS:
        module = importlib.import_module(f"nnlab.commands.{name}")
        command = subparsers.add_parser(name, help=module.HELP, description=module.HELP, allow_abbrev=False)
        command.add_argument("--debug", action="store_true", help="show the traceback of an error")
        module.add_arguments(command)
        commands[name] = command
    return parser, commands


def describe(error: Exception) -> str:
    """An error in one line. A missing package gets its cure; an error that says nothing at least says its name."""
    if isinstance(error, ModuleNotFoundError) and error.name and not error.name.startswith("nnlab"):
        return f"the package {error.name} is not installed; in the clone, `python3 -m nnlab lab` installs everything"
    text = " ".join(str(error).split())
    if text and type(error).__module__ == "nnlab.errors":
        return text
    if isinstance(error, MemoryError):
        return f"this needs more memory than there is; ask for a smaller size ({text or 'MemoryError'})"
    expected = isinstance(error, OSError | ValueError | RuntimeError | TypeError | ArithmeticError)
    if text and expected and not isinstance(error, NotImplementedError):
        return text
    return f"{type(error).__name__}: {text or 'no message'} (--debug shows where)"
