"""The exercises of lesson 08: the block to take, and what rounding costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nnlab.lessons.exercises import exercise, finished

Function = Callable[..., Any]


@exercise("08.best_fit", right="Large blocks stay whole for those who need them.")
def best_fit(value: Function) -> str | None:
    """Write best_fit(sizes, nbytes): the place, in a list of sizes, of the smallest one that holds nbytes, or None."""
    sizes = [4096, 1024, 512, 2048]
    answer = finished(value(sizes, 1000))
    if answer == 0 and value([512, 4096], 1000) == 1:
        return f"Of {sizes} you take the first that fits; take the smallest one that does."
    if answer == 1024:
        return "That is the size; its place in the list is wanted, here 1."
    if answer != 1:
        return f"For 1000 bytes in {sizes} it should be 1, yours gives {answer}."
    if (none := value(sizes, 5000)) is not None:
        return f"None of {sizes} holds 5000 bytes: it should be None, yours gives {none}."
    if value(sizes, 1024) != 1:
        return "A block that is exactly as large as what is asked for fits."
    return None


@exercise("08.rounding", right="One float takes 512 bytes. Small arrays are dear; a thousand of them belong into one.")
def rounding(value: Function) -> str | None:
    """Write rounding(sizes): the bytes lost when each of these sizes is rounded up to a multiple of 512."""
    sizes = [4, 512, 1000]
    right = 508 + 0 + 24
    answer = finished(value(sizes))
    if answer == right:
        return None
    if answer == -sum(sizes) % 512:
        return "The pool rounds each block by itself, not their sum."
    if answer == right + 512:
        return "A size that is a multiple of 512 already loses nothing."
    if answer == right + sum(sizes):
        return "That is what the blocks take. Subtract what was asked for."
    return f"For {sizes} it should be {right}, yours gives {answer}."
