"""Lesson 11: exercises know right answers and usual mistakes, the widget books what the lesson's own step books."""

from __future__ import annotations

import ast
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ipywidgets")

import nnlab
from nnlab.backends.sim.device import load_device
from nnlab.lessons import dispatch
from nnlab.lessons.exercises.lesson_11 import HOST
from nnlab.lessons.recorded import recording
from nnlab.lessons.widgets import Dispatch

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "11_dispatch_overhead.ipynb"


def functions_of_the_lesson():
    """`forward` and `step`, as the notebook has them."""
    found = {}
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and "def step(" in source:
            assert all(isinstance(node, ast.FunctionDef) for node in ast.parse(source).body)
            exec(source, found)
    return found


step = functions_of_the_lesson()["step"]


def denoise(home, x, w, noise, total):
    z = home.matmul(x + noise, w)
    total += (z * z).sum()


def denoise_with_at(home, x, w, noise, total):
    total += (((x + noise) @ w) ** 2).sum()


def denoise_on_the_host(home, x, w, noise, total):
    z = home.matmul(x + noise, w)
    total.fill(float(total[0]) + float((z * z).sum()))


def denoise_without_noise(home, x, w, noise, total):
    z = home.matmul(x, w)
    total += (z * z).sum()


def denoise_returned(home, x, w, noise, total):
    return total + (home.matmul(x + noise, w) ** 2).sum()


def captured(home, x, y, net):
    with home.capture() as graph:
        step(home, x, y, net)

    def run(steps):
        for _ in range(steps):
            graph.replay()

    return run


def captured_after_a_step(home, x, y, net):
    step(home, x, y, net)
    return captured(home, x, y, net)


def replayed_once(home, x, y, net):
    run = captured(home, x, y, net)
    return lambda steps: run(1)


CASES = [
    ("11.predict", HOST, "Right."),
    ("11.predict", HOST | {"graph": 30 * 6.9}, "'graph': one launch a step"),
    ("11.predict", {"graph": 7}, "'one by one' is missing"),
    ("11.predict", dict.fromkeys(HOST, ...), "Still to do"),
    ("11.denoise", denoise, "Right."),
    ("11.denoise", denoise_with_at, "use backend.matmul"),
    ("11.denoise", denoise_on_the_host, "float() cannot be captured"),
    ("11.denoise", denoise_without_noise, "total should be"),
    ("11.denoise", denoise_returned, "Change it in place"),
    ("11.denoise", lambda *arguments: ..., "Still to do"),
    ("11.prepare", captured, "Right."),
    ("11.prepare", captured_after_a_step, "leave the weights as they are"),
    ("11.prepare", replayed_once, "are not those of 3 steps"),
    ("11.prepare", lambda *arguments: 3, "should return a function"),
    ("11.prepare", lambda *arguments: ..., "Still to do"),
]


@pytest.mark.parametrize(("key", "answer", "word"), CASES)
def test_answers_are_told_apart(key, answer, word, judged):
    judged(key, answer, word)


def test_the_lessons_step_is_that_of_nnlab(b):
    """Same network, loss and rate: same loss, and the same weights afterwards."""
    sizes = (5, 4, 3, 2)
    x, y = dispatch.batch(b, 7, sizes)
    net, model = (
        dispatch.weights(b, sizes),
        nnlab.nn.mlp(sizes, activation="leaky_relu", bias=False, backend=b, rng=np.random.default_rng(0)),
    )
    names = list(model.parameters)
    for name, w in zip(names, net, strict=True):
        model.parameters[name][...] = w
    loss, gradient = nnlab.nn.losses.sse(model(x), y)
    model.backward(gradient)
    nnlab.training.SGD().update(model.parameters, model.gradients, 0.01)
    assert float(step(b, x, y, net, rate=0.01)) == pytest.approx(float(loss), rel=1e-5)
    for name, w in zip(names, net, strict=True):
        np.testing.assert_allclose(b.to_host(w), b.to_host(model.parameters[name]), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("sizes", "rows"), [((784, 256, 128, 10), 1), ((20, 16, 10), 300), ((784, 10), 32)])
def test_the_widget_books_the_kernels_of_the_lessons_step(sizes, rows):
    sim = nnlab.backend("sim")
    (x, y), net = dispatch.batch(sim, rows, sizes), dispatch.weights(sim, sizes)
    step(sim, x, y, net)
    with sim.capture() as graph:
        step(sim, x, y, net)
    booked = [kernel.seconds for kernel in dispatch.kernels(load_device("h200"), sizes, rows)]
    assert [seconds for _, seconds in graph.nodes] == pytest.approx(booked)
    sim.synchronize()
    with sim.measure() as receipt:
        for _ in range(10):
            step(sim, x, y, net)
    assert receipt.seconds / 10 == pytest.approx(
        dispatch.costs(load_device("h200"), sizes, rows)["one by one"].host, rel=0.01
    )


def test_the_recorded_operations_are_those_of_the_products():
    """Three products of a layer, but the first passes no slope on; a product of m x k and k x n has 2 m k n."""
    for job in recording("dispatch-h200")["jobs"].values():
        widths = [int(word) for word in job["network"].split(",")[0].split("-")]
        products = [2 * job["rows"] * a * b for a, b in pairwise(widths)]
        assert job["operations"] == 3 * sum(products) - products[0]


@pytest.fixture(scope="module")
def ui():
    return Dispatch()


def test_the_widget_says_where_methods_meet(ui):
    assert "one by one 503 µs (host)" in ui.show(rows=1)
    assert "the same time" not in ui.show(rows=256)
    assert "the same time" in ui.show(rows=65536)
    assert "loop kernel on one cluster does not fit" in ui.show(rows=1, width=1024)
    assert "times ahead of one by one" in ui.show(rows=1, width=16, layers=4)
    assert "rows: (1, 4," in ui.show(rows=3)


def test_the_widgets_bars_end_at_the_times(ui):
    ui.show(rows=1, width=1024, layers=4)
    cost = ui.costs[1, 1024, 4]["graph"]
    host, device = (bars[1] for bars in ui.bars)
    assert host.get_x() + host.get_width() == pytest.approx(1e6 * cost.host)
    assert device.get_x() + device.get_width() == pytest.approx(1e6 * cost.device)
    assert [bars[2].get_width() for bars in ui.bars] == [0, 0]
