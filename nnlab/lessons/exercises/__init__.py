"""The exercises of all lessons, one file a lesson (`lesson_01.py`, ...).

@exercise("01.predict", right="That is the whole forward pass.")
def predict(value):
    '''Write predict(x, w): the product of the features and the weights.'''      # the task, repeated while undone
    answer = finished(value(np.ones((2, 3)), np.ones((3, 1))))
    if answer.shape != (2, 1):
        return f"For x (2, 3) and w (3, 1) the result should be (2, 1), yours is {answer.shape}."
    return None                                                                # nothing to complain about
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nnlab.lessons.text import unfilled

Judge = Callable[[Any], str | None]


class Unfinished(Exception):
    """The answer is still the placeholder of a fresh notebook."""


@dataclass(frozen=True)
class Exercise:
    """task: what to do, in a sentence. right: what is said to a right answer. judge: finds what is wrong, or None."""

    task: str
    right: str
    judge: Judge


EXERCISES: dict[str, Exercise] = {}


def exercise(key: str, *, right: str) -> Callable[[Judge], Judge]:
    """Register a judge under its key; its docstring is the task."""

    def register(judge: Judge) -> Judge:
        task = inspect.getdoc(judge)
        if not task:
            raise ValueError(f"the exercise {key!r} needs a docstring that states the task")
        EXERCISES[key] = Exercise(" ".join(task.split()), right, judge)
        return judge

    return register


def finished(value: Any) -> Any:
    """The value itself; raises Unfinished while it is None or `...`."""
    if unfilled(value):
        raise Unfinished
    return value
