"""The exercises of lesson 06 know right answers and the usual mistakes; the crossover is found and told."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("ipywidgets")

import nnlab
from nnlab.lessons import crossover
from nnlab.lessons.widgets import Crossover


def into(home, x, w):
    p = np.zeros((5, 1))
    home.matmul(home.asarray(x), w, out=home.asarray(p))
    return p


def through_the_host(home, x, w):
    return home.to_host(home.matmul(home.asarray(x), home.asarray(home.to_host(w))))


def trained(home, x_host, y_host, rate, epochs):
    x, y = home.asarray(x_host), home.asarray(y_host)
    w = home.xp.zeros((x.shape[1], 1), dtype=home.dtype)
    for _ in range(epochs):
        w -= rate / len(x) * home.matmul(x, home.matmul(x, w) - y, transpose_a=True)
    return w


CASES = [
    ("06.predict", lambda home, x, w: home.to_host(home.matmul(home.asarray(x), w)), "Right."),
    ("06.predict", lambda home, x, w: home.matmul(home.asarray(x), w), "still lives on the device"),
    ("06.predict", into, "written into a copy"),
    ("06.predict", through_the_host, "makes 4 copies"),
    ("06.predict", lambda home, x, w: home.to_host(home.matmul(home.asarray(x), w))[:, 0], "yours is (5,)"),
    ("06.predict", lambda home, x, w: home.to_host(home.matmul(home.asarray(x + 1), w)), "numbers are wrong"),
    ("06.rate", lambda k, n: 0.05 * (1 + math.cos(math.pi * k / n)), "Right."),
    ("06.rate", lambda k, n: 0.05 * (1 + np.cos(np.pi * k / n)), "it gives float64"),
    ("06.rate", lambda k, n: np.float32(0.05 * (1 + math.cos(math.pi * k / n))), "make it a Python float"),
    ("06.rate", lambda k, n: 0.1 * (1 - k / n), "At k = 3"),
    ("06.quiet", lambda home, *rest: home.to_host(trained(home, *rest)), "Right."),
    ("06.quiet", trained, "still live on the device"),
    ("06.quiet", lambda home, x, y, rate, n: home.to_host(trained(home, x, y, rate, n - 1)), "after 7 epochs"),
]


@pytest.mark.parametrize(("key", "answer", "word"), CASES)
def test_answers_are_told_apart(key, answer, word, judged):
    judged(key, answer, word)


@pytest.mark.parametrize("key", ["06.predict", "06.rate", "06.quiet"])
def test_an_empty_function_repeats_the_task(key, judged):
    judged(key, lambda *arguments: ..., "Still to do: Write ")


def test_a_step_costs_as_many_launches_at_any_batch():
    """D-01."""
    b, launches = nnlab.backend("sim"), []
    for batch in (4, 4096):
        step = crossover.step(b, batch, 8)
        step()
        with b.measure() as receipt:
            step()
        launches.append(receipt.launches)
        assert receipt.waits == 0
    assert launches == [40, 40]


def test_both_homes_are_timed_for_every_size():
    batches, widths = (4, 8, 16), (8, 16)
    for name in ("numpy", "sim"):
        times = crossover.seconds(nnlab.backend(name), batches, widths)
        assert times.shape == (2, 3)
        assert (times > 0).all()


@pytest.mark.parametrize(
    ("device", "expected"), [([9, 9, 9], None), ([9, 2, 2], 8), ([0, 9, 2], 16), ([0, 1, 2], 4), ([0, 0, 9], None)]
)
def test_the_crossing_is_where_the_device_wins_for_good(device, expected):
    assert crossover.crossing((4, 8, 16), np.array([1, 3, 5]), np.array(device)) == expected


def test_the_widget_names_the_winner_and_the_crossing():
    host, device = np.array([[1e-4, 1e-2]]), np.array([[5e-4, 5e-4]])
    ui = Crossover((4, 64), (8,), host, device, name="modelled")
    assert "NumPy × 5.0; at this width the GPU wins from batch 64 on" in ui.show(batch=4)
    assert "the GPU × 20.0" in ui.show(batch=64)
    with pytest.raises(ValueError, match="1 x 2 sizes"):
        Crossover((4, 64), (8,), host.T, device, name="modelled")
