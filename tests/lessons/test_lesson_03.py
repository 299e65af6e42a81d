"""The exercises of lesson 03 know right answers and the usual mistakes; the answer to the slider's goal is true."""

from __future__ import annotations

import numpy as np
import pytest

from nnlab.lessons.widgets import Xor

XOR = {"W1": [[10, 10], [10, 10]], "b1": [[-5, -15]], "W2": [[5], [-5]], "b2": [[-5]]}
SHAPES = {"dW1": (5, 7), "dH": (32, 7), "dW2": (7, 3), "dz": (32, 3)}

CASES = [
    ("03.by_hand", XOR, "Right."),
    ("03.by_hand", XOR | {"b1": [-5, -15], "b2": -5}, "Right."),
    ("03.by_hand", XOR | {"b2": [[5]]}, "For a = 0, b = 0"),
    ("03.by_hand", XOR | {"W2": [[5], [5]]}, "For a = 0, b = 1"),
    ("03.by_hand", XOR | {"W1": [[10, 10]]}, "W1 has the shape (2, 2); yours is (1, 2)"),
    ("03.shapes", SHAPES, "Right."),
    ("03.shapes", SHAPES | {"dW1": (7, 5)}, "turned round"),
    ("03.shapes", SHAPES | {"dH": (7, 7)}, "dH cannot be (7, 7): it has the shape of H"),
    ("03.relu", lambda dH, S: dH * (S > 0), "Right."),
    ("03.relu", lambda dH, S: dH * (np.maximum(S, 0) >= 0), "Every gradient passes"),
    ("03.relu", lambda dH, S: (S > 0) * 1.0, "The chain rule multiplies"),
    ("03.relu", lambda dH, S: dH * np.maximum(S, 0), "dS should be"),
    ("03.relu", lambda dH, S: dH.sum(), "yours has ()"),
]
EMPTY = [
    ("03.by_hand", dict.fromkeys(XOR, ...)),
    ("03.shapes", SHAPES | {"dz": ...}),
    ("03.relu", lambda dH, S: ...),
]


@pytest.mark.parametrize(("key", "answer", "word"), CASES)
def test_answers_are_told_apart(key, answer, word, judged):
    judged(key, answer, word)


@pytest.mark.parametrize(("key", "answer"), EMPTY)
def test_an_empty_answer_repeats_the_task(key, answer, judged):
    judged(key, answer, "Still to do: ")


def test_the_answer_to_the_goal_of_the_slider_is_true():
    """Two tanh units from all starts near a rate of 2, not at 1; three at 1; one never, whatever the activation."""
    ui = Xor()

    def right(start, **values):
        return "<b>4</b> right" in ui.update(start=start, **values)

    def always(**values):
        return all(right(start, **values) for start in ui.start.options)

    assert always(width=2, activation="tanh", rate=1.8)
    assert not right(4, width=2, activation="tanh", rate=1.0)
    assert always(width=3, activation="tanh", rate=1.0)
    assert all(always(width=4, activation="tanh", rate=rate) for rate in ui.rates if 0.03 < rate < 6)
    for start in ui.start.options:
        for activation in ui.activation.options:
            assert not any(right(start, width=1, activation=activation, rate=rate) for rate in ui.rates)
