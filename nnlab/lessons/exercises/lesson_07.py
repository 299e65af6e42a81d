"""The exercises of lesson 07: which lines wait, clipping without an if, a history in one copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nnlab.backends import backend
from nnlab.lessons.exercises import exercise, finished

Function = Callable[..., Any]
WAITING = {
    "x.sum()": False,
    "float(x.sum())": True,
    "x.max() > 3": False,
    "while x.max() > 3": True,
    "x[x > 0]": True,
    "xp.where(x > 0, x, 0)": False,
    "print(x.shape)": False,
    "print(x)": True,
}


@exercise("07.waits", right="What needs a value on the host waits; what needs only shapes does not.")
def waits(value: dict[str, bool]) -> str | None:
    """Fill in the dictionary: does the line wait for the device, True or False?"""
    missing = [line for line in WAITING if line not in value]
    if missing:
        return f"{missing[0]!r} is missing."
    for line, right in WAITING.items():
        if bool(finished(value[line])) != right:
            return f"{line!r}: {'it does wait' if right else 'it does not wait'}. Try it under b.measure()."
    return None


@exercise("07.clip", right="The decision is made on the device, by arithmetic instead of an if.")
def clip(value: Function) -> str | None:
    """Write clip(xp, g, most): g itself where its largest |element| is at most `most`, else g scaled down to that."""
    b = backend("sim", dtype="float64")
    for g in (np.array([[0.5, -2.0], [0.1, 1.0]]), np.array([[0.5, -0.2]]), np.array([[-40.0, 8.0]])):
        right = g * min(1.0, 1.0 / np.abs(g).max())
        device_g = b.asarray(g)
        with b.measure() as receipt:
            answer = finished(value(b.xp, device_g, 1.0))
        if not b.owns(answer):
            return "The result should still live on the device."
        found = b.to_host(answer)
        if found.shape != g.shape or not np.allclose(found, right):
            return f"For g = {g.tolist()} and most = 1 it should be {right.tolist()}, yours is {found.tolist()}."
        if receipt.waits:
            return f"The numbers are right, but it waits {receipt.waits} times. xp.minimum decides on the device."
    return None


@exercise("07.history", right="The losses stay on the device until the end.")
def history(value: Function) -> str | None:
    """Write history(home, step, steps): call step() `steps` times; the losses it returns, as a host array (steps,)."""
    b = backend("sim", dtype="float64")
    counter = b.xp.zeros(())

    def step() -> Any:
        counter[...] = counter + 1.5
        return counter * 1.0

    answer = finished(value(b, step, 6))
    called = round(float(counter) / 1.5)
    if called != 6:
        return f"step() is to be called 6 times, yours calls it {called} times."
    if not isinstance(answer, np.ndarray) or answer.shape != (6,):
        return f"A host array of shape (6,) is wanted, yours is {type(answer).__name__} {getattr(answer, 'shape', '')}."
    if not np.allclose(answer, 1.5 * np.arange(1, 7)):
        return f"The losses should be {1.5 * np.arange(1, 7)}, yours are {answer}."
    return None
