"""The exercises of lesson 15 know right answers and the usual mistakes; what it says of the recordings is true."""

from __future__ import annotations

import numpy as np
import pytest

from nnlab.datasets import data_path
from nnlab.images import constant_image, read_image, to_unit
from nnlab.lessons.recorded import recording
from nnlab.lessons.widgets import Sines

CAT = to_unit(read_image(data_path("chelsea_96.png")))


def bounds(sizes, omega_0):
    return [1 / sizes[0]] + [np.sqrt(6 / n) / omega_0 for n in sizes[1:-1]]


CASES = [
    ("15.first_step", lambda g, rate: -rate * np.sign(g), "Right."),
    ("15.first_step", lambda g, rate: -rate * g / (abs(g) + 1e-8), "Right."),
    ("15.first_step", lambda g, rate: rate * np.sign(g), "The sign"),
    ("15.first_step", lambda g, rate: -rate * g, "That is gradient descent"),
    ("15.first_step", lambda g, rate: -rate * 0.1 * g / np.sqrt(0.001 * g * g), "leaves out the corrections"),
    ("15.first_step", lambda g, rate: 7.0, "yours is 7"),
    ("15.bounds", bounds, "Right."),
    ("15.bounds", lambda sizes, w: bounds(sizes, 1.0), "divided by it"),
    ("15.bounds", lambda sizes, w: [np.sqrt(6 / n) / w for n in sizes[:-1]], "in the first one too"),
    ("15.bounds", lambda sizes, w: bounds(sizes, w)[:-1], "you gave 2 bounds"),
    ("15.bounds", lambda sizes, w: [2 * bound for bound in bounds(sizes, w)], "Layer 1 of sizes [2, 256, 256, 1]"),
    ("15.own", (CAT, CAT), "Right."),
    ("15.own", (CAT, constant_image(CAT)), "not yet"),
    ("15.own", (CAT, CAT[..., 0]), "an output a channel"),
]
EMPTY = [("15.first_step", lambda g, rate: ...), ("15.bounds", lambda sizes, w: ...), ("15.own", ...)]


@pytest.mark.parametrize(("key", "answer", "word"), CASES)
def test_answers_are_told_apart(key, answer, word, judged):
    judged(key, answer, word)


@pytest.mark.parametrize(("key", "answer"), EMPTY)
def test_an_empty_answer_repeats_the_task(key, answer, judged):
    judged(key, answer, "Still to do: ")


def test_the_answer_to_the_goal_of_the_sliders_is_true():
    """30 with 128 units is best between the pixels; 120 with 128 on them, and worse than one grey between."""
    ui = Sines()
    between = {key: run["render_db"][-1] for key, run in ui.runs.items()}
    on = {key: run["trained_db"][-1] for key, run in ui.runs.items()}
    assert max(between, key=between.get) == (30, 128)
    assert max(on, key=on.get) == (120, 128)
    assert between[120, 128] < 11 < ui.record["constant_db"]
    for width in (16, 32, 64):
        assert max(ui.omega_0.options, key=lambda omega_0: between[omega_0, width]) == 60
    assert "35.3 dB on the pixels, 22.1 between" in ui.show(omega_0=30, width=128)
    for (omega_0, _), run in ui.runs.items():
        assert omega_0 < 5 or all(0.8 < spread < 1.1 for spread in run["spreads"][1:])
        assert run["spreads"][0] == pytest.approx(omega_0 * np.sqrt(1 / 18), rel=0.1)


def test_a_run_that_was_not_recorded_is_told():
    ui = Sines()
    before = ui.picture.value
    assert "not 7 with 64" in ui.show(omega_0=7, width=64)
    assert ui.picture.value == before


def test_the_recorded_table_says_what_the_lesson_says():
    runs = recording("siren-quality")["runs"]

    def scores(name, step):
        run = runs[name]
        place = run["steps"].index(step)
        return run["trained_db"][place], run["render_db"][place]

    tanh, octaves = scores("tanh, 0.001", 15000), scores("relu with octaves, 0.001", 15000)
    assert scores("siren, cosine from 0.0005", 100)[0] > tanh[0]
    assert octaves[0] > 57
    assert octaves[1] < scores("relu, 0.001", 2000)[1]
    assert max(max(run["render_db"]) for run in runs.values()) == scores("siren, cosine from 0.0005", 1000)[1] < 30.2
    restless = runs["siren, 0.001"]
    assert restless["loss"][19] < 1e-11 < 0.01 < restless["loss"][21]
    assert restless["render_db"][-1] < 24.5
    for name in ("tanh, 0.001", "relu, 0.001"):
        on, between = np.array(runs[name]["trained_db"]), np.array(runs[name]["render_db"])
        assert (on - between < 3.5).all()
