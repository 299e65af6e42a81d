"""Guesses: the learner chooses before the result is shown, and is told why the choice was right or wrong."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from nnlab.errors import UnknownName
from nnlab.lessons.text import RIGHT, TODO, WRONG, say, unfilled

ANSWERS = files("nnlab.lessons") / "answers"


def guess(key: str, choice: str | None = None) -> None:
    """Tell whether `choice` is right, and why.

    key: the lesson and the name of the guess, "01.rate"; the answers are in `answers/01.toml`, away from the cell.
    choice: one of the letters that the question offers. While it is None or `...`, the cell says what to do.
    Raises UnknownName for a key that no lesson has.
    """
    entry = lookup(key)
    letters = sorted(entry["why"])
    if unfilled(choice):
        say(TODO, f"Your guess first: replace the dots by {_either(letters)}, and run this cell again.")
    elif (letter := str(choice).strip().lower()) not in letters:
        say(TODO, f"{choice!r} is not one of the choices. Take {_either(letters)}.")
    elif letter == entry["answer"]:
        say(RIGHT, "Right.", entry["why"][letter])
    else:
        say(WRONG, "Not this one.", entry["why"][letter])


def lookup(key: str) -> dict[str, Any]:
    """The entry of a guess: `answer`, a letter, and `why`, a text for each letter."""
    lesson, _, name = key.partition(".")
    entries = _lesson(lesson)
    if name not in entries:
        raise UnknownName("guess", key, [f"{lesson}.{known}" for known in entries] or keys())
    entry: dict[str, Any] = entries[name]
    return entry


def keys() -> list[str]:
    """All guesses of all lessons."""
    lessons = sorted(path.name.removesuffix(".toml") for path in ANSWERS.iterdir() if path.name.endswith(".toml"))
    return [f"{lesson}.{name}" for lesson in lessons for name in _lesson(lesson)]


@cache
def _lesson(lesson: str) -> dict[str, Any]:
    path = ANSWERS / f"{lesson}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _either(letters: list[str]) -> str:
    quoted = [f'"{letter}"' for letter in letters]
    return ", ".join(quoted[:-1]) + " or " + quoted[-1]
