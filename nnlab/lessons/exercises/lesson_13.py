"""The exercises of lesson 13, stopping and going on."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nnlab.lessons.exercises import Unfinished, exercise, finished
from nnlab.lessons.text import unfilled


@exercise("13.rate", right="The second part goes on where the first one stopped, and arrives at 0.")
def rate(value: Any) -> str | None:
    """Write rate(i, done, further, highest): the cosine of epoch i of a resumed run, laid over done + further
    epochs."""
    highest = 0.1
    for done, further in ((5, 5), (0, 10), (3, 9)):
        total, count = done + further, range(further + 1)
        right = [_cosine(i + done, total, highest) for i in count]
        answer = [float(finished(value(i, done, further, highest))) for i in count]
        if _same(answer, right):
            continue
        i = next(i for i in count if not math.isclose(answer[i], right[i], abs_tol=1e-12))
        told = (
            f"With {done} epochs done, {further} to go and highest {highest}, epoch {i} has the rate {right[i]:.4f}; "
            f"yours is {answer[i]:.4f}."
        )
        mistakes = {
            "That is the articles' schedule, which counts from 0 again.": [_cosine(i, total, highest) for i in count],
            "That is a restart: a whole cosine over the further epochs.": [_cosine(i, further, highest) for i in count],
            "Divide by the total of the whole run.": [_cosine(i + done, further, highest) for i in count],
        }
        return " ".join([told, *(why for why, curve in mistakes.items() if _same(answer, curve))])
    return None


def _same(answer: list[float], curve: list[float]) -> bool:
    return all(math.isclose(a, b, abs_tol=1e-12) for a, b in zip(answer, curve, strict=True))


def _cosine(k: int, steps: int, highest: float) -> float:
    return highest * 0.5 * (1 + math.cos(math.pi * k / steps))


@exercise("13.save", right="The old file or the new one, whatever happens.")
def save(value: Any) -> str | None:
    """Write safe_save(path, pieces): the file holds all pieces (bytes), or after an error what it held before."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "run.bin"
        if value(path, [b"old ", b"content"]) is ...:
            raise Unfinished
        if not path.is_file() or path.read_bytes() != b"old content":
            held = repr(path.read_bytes()) if path.is_file() else "not there"
            return f"After safe_save(path, [b'old ', b'content']) the file should hold b'old content'; it is {held}."
        return _fails_well(value, path) or _leaves_one_file(path) or _replaces(value, path)


def _fails_well(value: Any, path: Path) -> str | None:
    def breaks() -> Iterator[bytes]:
        yield b"new "
        raise InterruptedError("the power failed")

    try:
        value(path, breaks())
    except InterruptedError:
        silent = False
    else:
        silent = True
    if not path.is_file() or path.read_bytes() != b"old content":
        held = repr(path.read_bytes()) if path.is_file() else "gone"
        return f"An error came after the first piece, and the old content is lost: the file is {held}. Write beside it."
    return "An error while writing was swallowed; whoever saves must hear of it." if silent else None


def _leaves_one_file(path: Path) -> str | None:
    others = sorted(file.name for file in path.parent.iterdir() if file != path)
    return f"After the error there is one file too many, {others[0]}: remove it on the way out." if others else None


def _replaces(value: Any, path: Path) -> str | None:
    before = path.stat().st_ino
    value(path, [b"new ", b"content"])
    if path.read_bytes() != b"new content":
        return f"A second save should replace the first; the file still holds {path.read_bytes()!r}."
    if path.stat().st_ino == before:
        return "The old file is overwritten in place, and a crash would tear it. Write beside it, then os.replace."
    return _leaves_one_file(path)


NEEDED = {
    "SGD": {"weights", "step", "batch seed"},
    "Momentum": {"weights", "step", "batch seed", "velocity"},
    "Adam": {"weights", "step", "batch seed", "first moment", "second moment", "update count"},
}
WHY = {
    "weights": "that is what was learned",
    "step": "the cosine and the place in the epoch depend on it",
    "batch seed": "the next batches would have other rows",
    "velocity": "the next step would start from rest",
    "first moment": "Adam's mean gradient would start from 0",
    "second moment": "Adam's scale of each weight would start from 0",
    "update count": "the bias corrections depend on it",
}


@exercise("13.needed", right="Everything that the next step reads, and nothing that it does not.")
def needed(value: Any) -> str | None:
    """Fill in needed: for SGD, Momentum and Adam the set of names of what a checkpoint must hold."""
    if any(unfilled(value[name]) for name in NEEDED):
        raise Unfinished
    for name, right in NEEDED.items():
        given = set(value[name])
        if unknown := sorted(given - set(WHY)):
            return f"{unknown[0]!r} is not one of the names; choose from {', '.join(WHY)}."
        if missing := sorted(right - given):
            return f"{name} needs the {missing[0]} too: {WHY[missing[0]]}."
        if extra := sorted(given - right):
            return f"{name} has no {extra[0]}."
    return None
