"""Exercise checks: they say what is wrong in terms of the exercise, and never stop a notebook."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from nnlab.errors import UnknownName
from nnlab.lessons.exercises import EXERCISES, Unfinished
from nnlab.lessons.text import RIGHT, TODO, WRONG, say, unfilled


def check(key: str, value: Any = None) -> None:
    """Check the answer to an exercise and print the verdict.

    key: the lesson and the name of the exercise, "01.predict". value: a number, an array or a function, as the
    exercise asks. While it is None or `...` (or a function that returns one of them), the task is repeated. An
    answer that makes the check itself fail is reported, with its own error message, and not raised.
    Raises UnknownName for a key that no lesson has.
    """
    exercise = lookup(key)
    if unfilled(value):
        say(TODO, "Still to do:", exercise.task)
        return
    try:
        complaint = exercise.judge(value)
    except Unfinished:
        say(TODO, "Still to do:", exercise.task)
    except Exception as error:
        say(WRONG, f"Your answer stopped with {type(error).__name__}: {error}.", "The task:", exercise.task)
    else:
        if complaint:
            say(WRONG, complaint)
        else:
            say(RIGHT, "Right.", exercise.right)


def lookup(key: str) -> Any:
    """The exercise with that key, from `exercises/lesson_NN.py`."""
    lesson = key.partition(".")[0]
    module = f"nnlab.lessons.exercises.lesson_{lesson}"
    if importlib.util.find_spec(module) is not None:
        importlib.import_module(module)
    if key not in EXERCISES:
        raise UnknownName("exercise", key, sorted(EXERCISES))
    return EXERCISES[key]
