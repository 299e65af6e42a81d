"""The exercises of lesson 14 know right answers and the usual mistakes; the answer to the slider's goal is true."""

from __future__ import annotations

import numpy as np
import pytest

import nnlab
from nnlab import nn
from nnlab.images import constant_image
from nnlab.lessons.recorded import recording
from nnlab.lessons.recorded.cub import cub
from nnlab.lessons.widgets import Signals
from nnlab.lessons.widgets.signals import COORDINATES


def centres(n):
    return (2 * np.arange(n) + 1) / n - 1


def rows(picture, *, across=centres, down=centres, columns=slice(None), values=None):
    height, width = picture.shape
    places = np.column_stack([np.tile(across(width), height), np.repeat(down(height), width)])
    return places[:, columns], (picture.ravel() if values is None else values(picture)).reshape(-1, 1)


def edges(n):
    return np.linspace(-1, 1, n)


class Constant:
    """Paints one value everywhere."""

    backend = nnlab.backend("numpy", dtype="float64")

    def __init__(self, value):
        self.value = np.atleast_1d(value)

    def __call__(self, x):
        return np.tile(self.value, (len(x), 1))


CUB = cub(16).astype(float)


def taught(picture):
    """A network of nearest pixels, for a square picture."""

    def model(x):
        column, row = np.floor((x + 1) / 2 * len(picture)).astype(int).T
        return picture[row, column].reshape(len(x), -1)

    return model


CASES = [
    ("14.layout", rows, "Right."),
    ("14.layout", lambda p: rows(p, columns=slice(None, None, -1)), "Column 0 is x"),
    ("14.layout", lambda p: rows(p, across=edges, down=edges), "Centres lie half a pixel inside"),
    ("14.layout", lambda p: rows(p, values=lambda v: v.T.ravel()), "run down the columns"),
    ("14.layout", lambda p: rows(p, values=lambda v: v.ravel()[::-1]), "y holds the values row by row"),
    ("14.layout", lambda p: rows(p, down=lambda n: -centres(n)), "Value 0 lies at"),
    ("14.layout", lambda p: (rows(p)[0].T, rows(p)[1]), "X is (6, 2)"),
    ("14.decibels", lambda mse: -10 * np.log10(mse), "Right."),
    ("14.decibels", lambda mse: 10 * np.log10(mse), "The sign"),
    ("14.decibels", lambda mse: -20 * np.log10(mse), "belongs to the root"),
    ("14.decibels", lambda mse: -10 * np.log(mse), "not the natural logarithm"),
    ("14.decibels", lambda mse: 3.0, "yours says 3"),
    ("14.own", (CUB, taught(CUB)), "Right."),
    ("14.own", (np.stack([CUB] * 3, axis=-1), taught(np.stack([CUB] * 3, axis=-1))), "Right."),
    ("14.own", (CUB, Constant(constant_image(CUB)[0, 0])), "it has not learned yet"),
    ("14.own", (CUB, Constant([0.1, 0.1, 0.1])), "an output a channel"),
]
EMPTY = [("14.layout", lambda picture: (..., ...)), ("14.decibels", lambda mse: ...), ("14.own", ...)]


@pytest.mark.parametrize(("key", "answer", "word"), CASES)
def test_answers_are_told_apart(key, answer, word, judged):
    judged(key, answer, word)


@pytest.mark.parametrize(("key", "answer"), EMPTY)
def test_an_empty_answer_repeats_the_task(key, answer, judged):
    judged(key, answer, "Still to do: ")


def test_the_answer_to_the_goal_of_the_slider_is_true():
    """Biases at 0: gains from 1.12 to 1.78, in either range; biases at 1: never."""
    ui = Signals()

    def reached(**values):
        return "goal reached" in ui.update(**values)

    for where in COORDINATES:
        assert all(reached(gain=gain, bias=0.0, coordinates=where) for gain in (1.12, 1.41, 1.78))
        gains = 10 ** np.arange(-1, 1.01, 0.1)
        assert not any(reached(gain=gain, bias=1.0, coordinates=where) for gain in gains)
        assert not reached(gain=0.5, bias=0.0, coordinates=where)
        assert not reached(gain=2.5, bias=0.0, coordinates=where)


def test_the_slider_shows_what_nnlab_computes():
    """The numbers of the lesson's figure at a gain of 0.1; at 10 most units of some layer are saturated."""
    ui = Signals()
    said = ui.show(gain=0.1, bias=0.0, coordinates="-1 to 1")
    assert "gradients 1.2e-11 to 9.4e-11" in said
    assert [bar.get_height() for bar in ui.shares] == [0] * 7
    ui.show(gain=10, bias=1.0, coordinates="0 to 1")
    assert max(bar.get_height() for bar in ui.shares) > 70


@pytest.mark.parametrize(
    ("values", "word"),
    [({"gain": 0}, "above 0"), ({"gain": float("nan")}, "above 0"), ({"coordinates": "0 to 2"}, "0 to 1")],
)
def test_values_that_make_no_sense_are_told(values, word):
    ui = Signals()
    before = ui.picture.value
    assert word in ui.show(**{"gain": 1.0, "bias": 0.0, "coordinates": "0 to 1"} | values)
    assert ui.picture.value == before


def test_the_recorded_order_is_the_one_that_the_lesson_tells():
    """Adam, then the three changes together, then thirteen times the steps; Xavier's start alone is the worst."""
    ends = {
        key: recording(f"cub-diary{key}")["trained_db"][-1]
        for key in ("", "-short", "-start", "-coordinates", "-rate", "-optimizer", "-all")
    }
    order = ["-optimizer", "-all", "", "-rate", "-coordinates", "-short", "-start"]
    assert sorted(ends, key=ends.get, reverse=True) == order
    assert sum(value.size for value in nn.mlp(
        recording("cub-diary")["sizes"], backend=nnlab.backend("numpy"), rng=np.random.default_rng(0)
    ).parameters.values()) == recording("cub-diary")["parameters"]  # fmt: skip
