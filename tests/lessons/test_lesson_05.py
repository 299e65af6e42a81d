"""The exercises of lesson 05 know right answers and the usual mistakes; its ports are one epoch, told apart by cost."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("ipywidgets")

import nnlab
from nnlab.lessons import ports
from nnlab.lessons.recorded import port, recording
from nnlab.lessons.widgets import PortCost


def lean(xp, x, y, w, step):
    w += step * (x.T @ (1 / (1 + xp.exp(-(x @ w))) - y))
    return w


def masked(xp, z):
    return ports.masked_sigmoid(xp, z)


CASES = [
    ("05.launches", lambda mails, rows: 20 * -(-mails // rows) + 3, "Right."),
    ("05.launches", lambda mails, rows: 20 * (mails // rows) + 3, "round up"),
    ("05.launches", lambda mails, rows: 20 * -(-mails // rows), "after the loop"),
    ("05.launches", lambda mails, rows: 23, "yours gives 23"),
    ("05.sigmoid", lambda xp, z: 0.5 + 0.5 * xp.tanh(z / 2), "Right."),
    ("05.sigmoid", ports.plain_sigmoid, "Right."),
    ("05.sigmoid", lambda xp, z: 1 / (1 + xp.exp(-z)), "up to 0 is safe"),
    ("05.sigmoid", lambda xp, z: xp.tanh(z), "yours gives"),
    ("05.sigmoid", masked, "4 reads and 4 waits"),
    ("05.lean", lambda xp, x, y, w, rate: lean(xp, x, y, w, -rate / len(x)), "Right."),
    ("05.lean", lambda xp, x, y, w, rate: lean(xp, x, y, w, -rate), "divide by the number"),
    ("05.lean", lambda xp, x, y, w, rate: lean(xp, x, y, w, rate / len(x)), "uphill"),
    ("05.lean", lambda xp, x, y, w, rate: w, "nothing has moved"),
    ("05.lean", lambda xp, x, y, w, rate: lean(xp, x, y, w.copy(), -rate / len(x)), "w itself"),
    ("05.lean", lambda xp, x, y, w, rate: lean(xp, x, y, w, -rate / 7), "After a step"),
]


@pytest.mark.parametrize(("key", "answer", "word"), CASES)
def test_answers_are_told_apart(key, answer, word, judged):
    judged(key, answer, word)


@pytest.mark.parametrize("key", ["05.launches", "05.sigmoid", "05.lean"])
def test_an_empty_function_repeats_the_task(key, judged):
    judged(key, lambda *arguments: ..., "Still to do: Write ")


def test_all_ports_take_the_same_step(b):
    x, y = (part[:40] for part in ports.mails())
    expected = 0.1 / 40 * x.T @ (y - 0.5)
    for choice in ports.PORTS.values():
        home = b.astype(choice.dtype)
        w = home.asarray(np.zeros((20, 1)))
        sigmoid = ports.masked_sigmoid if choice.masks else ports.plain_sigmoid
        loss = ports.epoch(home.xp, home.asarray(x), home.asarray(y), w, sigmoid, choice.rows or 40)
        np.testing.assert_allclose(home.to_host(w), expected, rtol=1e-4, atol=1e-7)
        assert float(loss) == pytest.approx(np.log(2), rel=1e-5)


def test_an_epoch_of_a_port_costs_what_its_choices_say():
    b, (x, y) = nnlab.backend("sim"), ports.mails()
    counts = {name: ports.receipt_of(b, choice, x[:20], y[:20]) for name, choice in ports.PORTS.items()}
    assert [receipt.launches for receipt in counts.values()] == [33 * 20 + 3, 35, 23, 23, 23, 23]
    assert [receipt.h2d_copies for receipt in counts.values()] == [2, 2, 2, 0, 0, 0]
    assert [receipt.waits for receipt in counts.values()] == [81, 5, 1, 1, 0, 0]


def test_the_widget_counts_a_whole_epoch_without_running_it():
    ui, (x, y) = PortCost(), ports.mails()
    whole = ports.receipt_of(nnlab.backend("sim"), ports.Port(rows=100, masks=True, upload=True, read=True), x, y)
    cost = ui.costs[100, True, True, True]
    assert (cost.launches, cost.copies, cost.waits) == (whole.launches, 2 + whole.d2h_copies, whole.waits)
    assert cost.seconds == pytest.approx(whole.seconds, rel=0.02)
    assert f"{whole.launches:,} launches" in ui.show(rows=100)


def test_the_recording_can_be_made_again():
    price = port.prices(nnlab.backend("sim"), 50)
    kept = recording("port-email")
    assert set(price) == set(kept["microseconds"])
    assert price["mask"] > 10 * price["launch"] > 0
    assert price["upload"] < price["bytes"]
    assert set(kept["milliseconds"]) == {*port.HOST, *ports.PORTS}
