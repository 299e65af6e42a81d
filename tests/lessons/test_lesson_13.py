"""The exercises of lesson 13 know right answers and the usual mistakes, and its widget runs what nnlab runs."""

from __future__ import annotations

import contextlib
import math
import os

import numpy as np
import pytest

pytest.importorskip("ipywidgets")

from nnlab import nn, training
from nnlab.lessons.widgets import Crash
from nnlab.lessons.widgets.crash import BATCH, CRASHES, FORGOTTEN, RATE, STEPS, batch

ALWAYS = {"weights", "step", "batch seed"}
NEEDED = {
    "SGD": ALWAYS,
    "Momentum": ALWAYS | {"velocity"},
    "Adam": ALWAYS | {"first moment", "second moment", "update count"},
}


def cosine(k, steps, highest):
    return highest * (1 + math.cos(math.pi * k / steps)) / 2


def safe(path, pieces):
    part = path.with_suffix(".part")
    try:
        part.write_bytes(b"".join(pieces))
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def in_place(path, pieces):
    with open(path, "wb") as file:
        file.writelines(pieces)


def in_place_at_once(path, pieces):
    path.write_bytes(b"".join(pieces))


def leaves_a_part(path, pieces):
    part = path.with_suffix(".part")
    with open(part, "wb") as file:
        file.writelines(pieces)
    os.replace(part, path)


def swallows(path, pieces):
    with contextlib.suppress(OSError):
        safe(path, pieces)


CASES = [
    ("13.rate", lambda i, done, further, high: cosine(i + done, done + further, high), "Right."),
    ("13.rate", lambda i, done, further, high: cosine(i, done + further, high), "counts from 0 again"),
    ("13.rate", lambda i, done, further, high: cosine(i, further, high), "a restart"),
    ("13.rate", lambda i, done, further, high: cosine(i + done, further, high), "Divide by the total"),
    ("13.rate", lambda i, done, further, high: high, "epoch 0 has the rate 0.0500; yours is 0.1000"),
    ("13.save", safe, "Right."),
    ("13.save", in_place, "the old content is lost"),
    ("13.save", in_place_at_once, "in place"),
    ("13.save", leaves_a_part, "one file too many, run.part"),
    ("13.save", swallows, "swallowed"),
    ("13.save", lambda path, pieces: None, "it is not there"),
    ("13.needed", NEEDED, "Right."),
    ("13.needed", NEEDED | {"Adam": NEEDED["Adam"] - {"update count"}}, "Adam needs the update count too"),
    ("13.needed", NEEDED | {"SGD": {"weights"}}, "SGD needs the batch seed too"),
    ("13.needed", NEEDED | {"SGD": ALWAYS | {"velocity"}}, "SGD has no velocity"),
    ("13.needed", NEEDED | {"SGD": ALWAYS | {"speed"}}, "'speed' is not one of the names"),
    ("13.needed", NEEDED | {"SGD": ...}, "Still to do"),
]


@pytest.mark.parametrize(("key", "answer", "word"), CASES)
def test_answers_are_told_apart(key, answer, word, judged):
    judged(key, answer, word)


@pytest.mark.parametrize("key", ["13.rate", "13.save"])
def test_an_empty_function_repeats_the_task(key, judged):
    judged(key, lambda *arguments: ..., "Still to do: Write ")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(70, 3))
    return x, np.tanh(x[:, :1]) + 0.1 * rng.normal(size=(70, 1))


@pytest.fixture(scope="module")
def ui(data):
    return Crash(*data, unit=1.0)


class Batches:
    """A generator that gives fit the widget's own batch seed."""

    def __init__(self, seed):
        self.seed = seed

    def integers(self, high):
        return self.seed


def test_the_widgets_run_is_the_packages(data, ui, host64):
    """Without a crash, and with a crash that forgets Adam's moments or its place in the schedule."""
    x, y = data
    start = {name: value.copy() for name, value in network(host64).parameters.items()}
    model = network(host64)
    history = training.fit(
        model, x, y, loss="mse", optimizer=training.Adam(), rate=training.cosine(RATE, STEPS), steps=STEPS,
        batch_size=BATCH, rng=Batches(0), log_every=1,
    )  # fmt: skip
    assert history.rate == pytest.approx(ui.rates[ui.straight].tolist())
    for forgotten in ("nothing", "Adam's moments", "the place in the schedule", "Adam's step count"):
        adam, schedule, shift = training.Adam(), training.cosine(RATE, STEPS), 0
        for name, value in model.parameters.items():
            value[...] = start[name]
        for step in range(STEPS):
            if step == CRASHES[1]:
                if forgotten == "Adam's moments":
                    for memory in adam.arrays.values():
                        memory[...] = 0
                adam.step = 0 if forgotten == "Adam's step count" else adam.step
                shift = step if forgotten == "the place in the schedule" else 0
            rows = batch(0, step, len(x))
            _, gradient = nn.losses.mse(model(x[rows]), y[rows])
            model.backward(gradient)
            adam.update(model.parameters, model.gradients, schedule(step - shift))
        loss = nn.losses.mse(model(x), y)[0]
        shown = ui.losses[ui.cases.index((CRASHES[1], forgotten))]
        assert shown[-1] == pytest.approx(float(loss), rel=1e-6)


def network(host64):
    return nn.mlp([3, 12, 1], activation="tanh", backend=host64, rng=np.random.default_rng(0))


def test_nothing_forgotten_is_no_crash_and_everything_else_is(ui):
    for (_, forgotten), distance in zip(ui.cases, ui.distances, strict=True):
        assert (distance == 0) == (forgotten == "nothing")


def test_both_ends_tell_their_crash(ui):
    assert "a weight off by up to 0" in ui.show(crash=CRASHES[0], forgotten=FORGOTTEN[0])
    words = ui.show(crash=CRASHES[-1], forgotten=FORGOTTEN[-1])
    assert f"step {CRASHES[-1]}, forgotten: all but the weights. Rate of the next step 0.0500 (right: 0.0003)" in words
