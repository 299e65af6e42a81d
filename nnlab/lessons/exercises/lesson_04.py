"""The exercises of lesson 04: counting parameters, a step with momentum, and how surely one kind beats another."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from nnlab.lessons.exercises import exercise, finished

Function = Callable[..., Any]


@exercise("04.count", right="A network of 6-12-12-1 has 253 of them, for 321 houses: room to learn some by heart.")
def count(value: Function) -> str | None:
    """Write count(sizes), the number of weights and biases of a network, say [6, 6, 1]: 49."""
    for sizes in ([6, 6, 1], [2, 5, 3, 1]):
        answer = finished(value(sizes))
        weights, biases = sum(m * n for m, n in pairwise(sizes)), sum(sizes[1:])
        if answer == weights:
            return f"For {sizes} these are the weights, {weights}. Each unit after the input also has a bias."
        if answer == weights + sum(sizes):
            return f"For {sizes} the inputs are counted as if they had biases: only the layers after them do."
        if answer != weights + biases:
            return f"For {sizes} it should be {weights + biases}, yours gives {answer}."
    return None


@exercise("04.momentum", right="With a constant gradient the step grows to ten times the plain one.")
def momentum(value: Function) -> str | None:
    """Write momentum_step(w, v, g, rate), one step with momentum 0.9, and give back the new w and the new v."""
    answer = finished(value(np.array([1.0, 2.0]), np.array([0.5, -1.0]), np.array([3.0, 0.0]), 0.1))
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        return "Give back two arrays, the new w and the new v: return w, v"
    w, v = (np.asarray(part, dtype=float) for part in answer)
    if np.allclose(w, [1.15, 1.1]) and np.allclose(v, [0.15, -0.9]):
        return None
    if np.allclose(v, [0.15, -0.9]) and np.allclose(w, [1.5, 1.0]):
        return "The new v is right, but w has moved by the old one. First change v, then add it to w."
    if np.allclose(v, [0.75, -0.9]):
        return "The gradient is added to the velocity; downhill is against it: v = 0.9 * v - rate * g."
    if np.allclose(v, [0.2, -1.0]):
        return "The old velocity is kept whole: 0.9 of it is wanted, or it never forgets."
    return f"For w = 1, v = 0.5, g = 3 and rate 0.1 they become w = 1.15 and v = 0.15; yours are {w[0]:g} and {v[0]:g}."


@exercise("04.beats", right="One half means no difference; a lead of one median over another says much less than this.")
def beats(value: Function) -> str | None:
    """Write beats(a, b), the probability that a random one of a is lower than a random one of b, ties as half."""
    a, b = np.array([44.0, 50.0, 52.0]), np.array([45.0, 50.0, 51.0, 60.0])
    answer = float(finished(value(a, b)))
    ties = float(finished(value(np.array([50.0]), np.array([50.0]))))
    if np.isclose(answer, 7.5 / 12) and np.isclose(ties, 0.5):
        return None
    if np.isclose(answer, 7 / 12):
        return "Ties are left out: count each pair of equal numbers as half a win."
    if np.isclose(answer, 8 / 12):
        return "A tie counts as half a win, not as a whole one."
    if np.isclose(answer, 4.5 / 12):
        return "That is the probability that b is lower. A lower error is the better one."
    if np.isclose(answer, 7.5):
        return "That is the number of wins: divide by the number of pairs."
    if np.isclose(answer, 7.5 / 12):
        return f"Right for a = {a} and b = {b}; but for a = [50] and b = [50] it should be 0.5, yours gives {ties:g}."
    return f"For a = {a} and b = {b} it should be 7.5 of 12 pairs, 0.625; yours gives {answer:g}."
