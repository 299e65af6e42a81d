"""The exercises of lesson 04 know right answers and the usual mistakes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest


def wins(a, b, *, tie):
    return np.mean((a[:, None] < b) + tie * (a[:, None] == b))


CASES = [
    ("04.count", lambda s: sum((m + 1) * n for m, n in pairwise(s)), "Right."),
    ("04.count", lambda s: sum(m * n for m, n in pairwise(s)), "Each unit after the input"),
    ("04.count", lambda s: sum(m * n for m, n in pairwise(s)) + sum(s), "as if they had biases"),
    ("04.count", lambda s: 49, "should be 37, yours gives 49"),
    ("04.momentum", lambda w, v, g, rate: (w + 0.9 * v - rate * g, 0.9 * v - rate * g), "Right."),
    ("04.momentum", lambda w, v, g, rate: (w + v, 0.9 * v - rate * g), "by the old one"),
    ("04.momentum", lambda w, v, g, rate: (w + 0.9 * v + rate * g, 0.9 * v + rate * g), "downhill"),
    ("04.momentum", lambda w, v, g, rate: (w + v - rate * g, v - rate * g), "never forgets"),
    ("04.momentum", lambda w, v, g, rate: w, "two arrays"),
    ("04.momentum", lambda w, v, g, rate: (w, v), "yours are 1 and 0.5."),
    ("04.beats", lambda a, b: wins(a, b, tie=0.5), "Right."),
    ("04.beats", lambda a, b: wins(a, b, tie=0), "Ties are left out"),
    ("04.beats", lambda a, b: wins(a, b, tie=1), "not as a whole one"),
    ("04.beats", lambda a, b: wins(b, a, tie=0.5), "b is lower"),
    ("04.beats", lambda a, b: wins(a, b, tie=0.5) * a.size * b.size, "divide by the number of pairs"),
    ("04.beats", lambda a, b: 0.2, "yours gives 0.2"),
    ("04.beats", lambda a, b: 0.625, "for a = [50] and b = [50] it should be 0.5"),
]


@pytest.mark.parametrize(("key", "answer", "word"), CASES)
def test_answers_are_told_apart(key, answer, word, judged):
    judged(key, answer, word)


@pytest.mark.parametrize("key", ["04.count", "04.momentum", "04.beats"])
def test_an_empty_function_repeats_the_task(key, judged):
    judged(key, lambda *arguments: ..., "Still to do: Write ")
