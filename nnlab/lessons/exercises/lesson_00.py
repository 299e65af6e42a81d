"""The exercise of lesson 00: ink instead of light."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nnlab.lessons.exercises import exercise, finished


@exercise("00.ink", right="White paper has no ink. That is all an exercise is: a function, and a verdict.")
def ink(value: Callable[..., Any]) -> str | None:
    """Write to_ink(picture), the ink of each pixel: 0 where the picture is white (1), 1 where it is black (0)."""
    picture = np.array([[1.0, 0.0], [0.25, 1.0]])
    answer = np.asarray(finished(value(picture)), dtype=float)
    if answer.shape != picture.shape:
        return f"One number a pixel is wanted, {picture.shape}; yours has the shape {answer.shape}."
    if np.array_equal(answer, 1 - picture):
        return None
    if np.array_equal(answer, picture):
        return "That is still the light. White is 1 in the picture and should become 0."
    if np.array_equal(answer, -picture):
        return "White becomes -1 that way; it should become 0."
    return f"A pixel of 0.25 should have 0.75 ink; yours has {answer[1, 0]:g}."
