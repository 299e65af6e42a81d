"""The exercises of lesson 07 know right answers and the usual mistakes; all ways of the step are the same step."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("ipywidgets")

import nnlab
from nnlab.lessons import cub_step
from nnlab.lessons.exercises.lesson_07 import WAITING
from nnlab.lessons.recorded import port, recording
from nnlab.lessons.widgets import Lanes


def branching(xp, g, most):
    largest = xp.abs(g).max()
    return g * (most / largest) if largest > most else g


def at_once(home, step, steps):
    return home.to_host(home.xp.stack([step() for _ in range(steps)]))


CASES = [
    ("07.waits", WAITING, "Right."),
    ("07.waits", WAITING | {"print(x)": False}, "'print(x)': it does wait"),
    ("07.waits", WAITING | {"x.sum()": True}, "'x.sum()': it does not wait"),
    ("07.waits", {"x.sum()": False}, "is missing"),
    ("07.waits", dict.fromkeys(WAITING, ...), "Still to do"),
    ("07.clip", lambda xp, g, most: g * xp.minimum(1.0, most / xp.abs(g).max()), "Right."),
    ("07.clip", branching, "waits 1 times"),
    ("07.clip", lambda xp, g, most: g * (most / xp.abs(g).max()), "it should be"),
    ("07.clip", lambda xp, g, most: 1.0, "still live on the device"),
    ("07.clip", lambda xp, g, most: ..., "Still to do"),
    ("07.history", at_once, "Right."),
    ("07.history", lambda home, step, steps: [float(step()) for _ in range(steps)], "yours is list"),
    ("07.history", lambda home, step, steps: at_once(home, step, steps - 1), "yours calls it 5 times"),
    ("07.history", lambda home, step, steps: 2 * at_once(home, step, steps), "The losses should be"),
    ("07.history", lambda home, step, steps: ..., "Still to do"),
]


@pytest.mark.parametrize(("key", "answer", "word"), CASES)
def test_answers_are_told_apart(key, answer, word, judged):
    judged(key, answer, word)


def test_the_lines_wait_as_the_exercise_says():
    b = nnlab.backend("sim")
    xp = b.xp
    for line, waits in WAITING.items():
        x = b.asarray(np.linspace(0, 1, 5))
        statement = f"{line}: break" if line.startswith("while") else line.replace("print(", "str(")
        with b.measure() as receipt:
            exec(statement, {"x": x, "xp": xp})
        assert (receipt.waits > 0) == waits, line


def test_all_ways_are_the_same_step(b):
    """And nnlab's own: the same network, loss and rate give the same weights."""
    x_host, y_host = cub_step.data(12)
    sizes = (2, 8, 4, 1)
    x, y = b.asarray(x_host), b.asarray(y_host)
    model = nnlab.nn.mlp(sizes, output="sigmoid", backend=b, rng=np.random.default_rng(0))
    for (weight, _), name in zip(cub_step.layers(b, sizes), ("0.weight", "2.weight", "4.weight"), strict=True):
        model.parameters[name][...] = weight
    before, gradient = nnlab.nn.losses.mse(model(x), y)
    model.backward(gradient)
    nnlab.training.SGD().update(model.parameters, model.gradients, 0.5)
    for column_sums in (cub_step.sum_rows, cub_step.product_rows):
        for sigmoid in (cub_step.plain_sigmoid, cub_step.masked_sigmoid):
            net = cub_step.layers(b, sizes)
            loss = cub_step.step(b, x, y, net, column_sums, sigmoid)
            assert float(loss) == pytest.approx(float(before), rel=1e-5)
            for (weight, bias), i in zip(net, (0, 2, 4), strict=True):
                parameters = model.parameters[f"{i}.weight"], model.parameters[f"{i}.bias"]
                np.testing.assert_allclose(b.to_host(weight), b.to_host(parameters[0]), rtol=1e-4, atol=1e-6)
                np.testing.assert_allclose(b.to_host(bias)[0], b.to_host(parameters[1]), rtol=1e-4, atol=1e-6)


def test_ways_cost_what_their_names_say():
    b, (x, y) = nnlab.backend("sim"), cub_step.data(10)
    counts = {}
    for way in cub_step.WAYS:
        run = cub_step.runner(b, way, x, y)
        run()
        with b.measure() as receipt:
            run()
        counts[way] = receipt.h2d_copies, receipt.d2h_copies, receipt.waits
    expected = dict.fromkeys(cub_step.WAYS, (0, 0, 0))
    assert counts == expected | {"loss read": (0, 1, 1), "masks": (0, 4, 4), "uploads": (2, 0, 0)}


def test_the_widget_says_which_lane_sets_the_time():
    ui = Lanes()
    assert "the host sets the time" in ui.show(rows=400)
    assert "the device sets the time" in ui.show(rows=40000)
    assert "the host sets the time" in ui.show(rows=40000, sums="product with ones")
    assert "1 waits" in ui.show(read="at the end")
    launches = [event for event in ui.runs[400, "sum over rows", "every step"].events if event.kind == "launch"]
    ui.show(rows=400)
    assert len(ui.bars["launch"].get_paths()) == len(launches)


def test_the_recording_can_be_made_again(monkeypatch):
    small = cub_step.data(8)
    monkeypatch.setattr(cub_step, "data", lambda size: small)
    made, kept = port.cub(nnlab.backend("sim")), recording("port-cub")
    assert set(made["milliseconds"]) == {"NumPy", *cub_step.WAYS}
    assert {"NumPy", "straight", "loss read"} <= set(kept["milliseconds"])
    assert set(made["microseconds"]) == set(kept["microseconds"])
