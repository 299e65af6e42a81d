"""The exercises of lesson 02 know right answers and the usual mistakes."""

from __future__ import annotations

import numpy as np
import pytest


def cost(p, y, threshold, alarm):
    called = p >= threshold
    return np.sum(~called & (y == 1)) + alarm * np.sum(called & (y == 0))


def cheapest(p, y, alarm):
    return min(np.linspace(0.01, 0.99, 99), key=lambda t: cost(p, y, t, alarm))


CASES = [
    ("02.logit", np.log(9), "Right."),
    ("02.logit", 2.2, "Right."),
    ("02.logit", 0.711, "other way"),
    ("02.logit", 1.0, "sigmoid of 1 is 0.731"),
    ("02.recall", lambda p, y, t: np.mean(p[y == 1] >= t), "Right."),
    ("02.recall", lambda p, y, t: y[p >= t].mean(), "precision"),
    ("02.recall", lambda p, y, t: np.mean((p >= t) == (y == 1)), "accuracy"),
    ("02.recall", lambda p, y, t: np.mean(p[y == 1] > t), "use >="),
    ("02.recall", lambda p, y, t: 7.0, "the recall is 0.5, not 7"),
    ("02.cheapest", cheapest, "Right."),
    ("02.cheapest", lambda p, y, alarm: cheapest(p, y, 1.0), "with alarm = 0.2"),
    ("02.cheapest", lambda p, y, alarm: 0.5, "another one costs"),
    ("02.cheapest", lambda p, y, alarm: 0.505, "not one of the thresholds"),
]


@pytest.mark.parametrize(("key", "answer", "word"), CASES)
def test_answers_are_told_apart(key, answer, word, judged):
    judged(key, answer, word)


@pytest.mark.parametrize(
    ("key", "empty"), [("02.logit", ...), ("02.recall", lambda *_: ...), ("02.cheapest", lambda *_: ...)]
)
def test_an_empty_answer_repeats_the_task(key, empty, judged):
    judged(key, empty, "Still to do: ")
