"""Receipts: exact counts, costs by line, and their difference."""

from __future__ import annotations

import numpy as np
import pytest

import nnlab
from nnlab.backends import Event, Line, Receipt
from nnlab.nn.losses import mse

XOR_SIZES = [2, 8, 1]


def training_step(b, model, x, y):
    loss, gradient = mse(model(x), y)
    model.backward(gradient)
    nnlab.training.SGD().update(model.parameters, model.gradients, 0.1)
    return loss


def step_receipt(b, rows):
    """A receipt of one training step of a 2-8-1 network."""
    model = nnlab.nn.mlp(XOR_SIZES, backend=b, rng=np.random.default_rng(0))
    x, y = b.asarray(np.ones((rows, 2))), b.asarray(np.ones((rows, 1)))
    training_step(b, model, x, y)
    with b.measure() as receipt:
        training_step(b, model, x, y)
    return receipt


def test_launches_do_not_grow_with_the_batch(sim):
    """D-01"""
    small, large = step_receipt(sim, 4), step_receipt(sim, 4096)
    assert small.launches == large.launches > 10
    assert small.by_operation() == large.by_operation()
    assert (large.h2d_copies, large.d2h_copies, large.waits) == (0, 0, 0)


def test_counts_are_deterministic():
    first, second = (step_receipt(nnlab.backend("sim"), 64) for _ in range(2))
    assert first.counts == second.counts
    assert first.seconds == pytest.approx(second.seconds, rel=1e-9)


def test_reading_the_loss_costs_one_copy_per_log(sim):
    """D-03"""
    b, rng = sim, np.random.default_rng(0)
    host = nnlab.backend("numpy")
    x, y = rng.standard_normal((32, 2)), rng.standard_normal((32, 1))
    options = {"loss": mse, "rate": 0.1, "steps": 100, "log_every": 10}

    def run(backend):
        model = nnlab.nn.mlp(XOR_SIZES, backend=backend, rng=np.random.default_rng(1))
        optimizer = nnlab.training.SGD()
        return nnlab.training.fit(model, backend.asarray(x), backend.asarray(y), optimizer=optimizer, **options)

    with b.measure() as receipt:
        history = run(b)
    assert receipt.d2h_copies <= 11 + 2  # ten logs, the final one, and one check of x and of y at the start
    np.testing.assert_allclose(history.loss, run(host).loss, atol=1e-6)


def test_copies_and_bytes(sim):
    with sim.measure() as receipt:
        x = sim.asarray(np.ones((10, 3)))
        sim.to_host(x)
        sim.to_host(x[:2])
    counts = (receipt.h2d_copies, receipt.h2d_bytes, receipt.d2h_copies, receipt.d2h_bytes)
    assert counts == (1, 120, 2, 144)


def test_the_costliest_lines_are_the_learners(sim):
    x = sim.asarray(np.ones(100_000))
    x * 2.0
    with sim.measure() as receipt:
        y = x * 2.0
        sim.to_host(y)  # the costliest: it waits
        z = y * 2.0
    first = receipt.costliest(1)[0]
    assert "the costliest" in first.text
    assert first.file == __file__
    assert (first.copies, first.waits, first.launches) == (1, 1, 0)
    assert sum(line.launches for line in receipt.lines) == receipt.launches == 2
    assert z.size == 100_000


def test_lines_inside_nnlab_are_charged_to_the_caller(sim):
    model = nnlab.nn.mlp(XOR_SIZES, backend=sim, rng=np.random.default_rng(0))
    x = sim.asarray(np.ones((4, 2)))
    with sim.measure() as receipt:
        model(x)
    assert [line.text for line in receipt.lines] == ["model(x)"]


def test_receipts_subtract():
    line = Line("a.py", 1, "x", launches=3, copies=1, waits=1, seconds=2.0)
    more = Receipt(launches=5, waits=None, seconds=3.0, events=[], lines=[line])
    less = Receipt(launches=2, waits=4, seconds=1.0, lines=[line._replace(launches=1, seconds=0.5)])
    difference = more - less
    assert (difference.launches, difference.waits, difference.seconds) == (3, None, 2.0)
    assert difference.lines == [Line("a.py", 1, "x", 2, 0, 0, 1.5)]
    assert difference.events is None
    assert (less - more).lines == [Line("a.py", 1, "x", -2, 0, 0, -1.5)]
    with pytest.raises(TypeError):
        more - 1


def test_the_table_shows_every_count_and_says_what_is_not_available():
    receipt = Receipt(launches=1234, h2d_bytes=5678, waits=None, seconds=0.0021, modelled=True)
    table = repr(receipt)
    for text in ("1,234", "5,678 B", "not available", "seconds, modelled", "2.1 ms", "costliest lines: not available"):
        assert text in table
    assert receipt.table() == table


def test_events_cover_both_lanes_and_begin_at_zero(sim):
    sim.asarray(np.ones(10)) * 2.0
    with sim.measure() as receipt:
        x = sim.asarray(np.ones(10))
        float((x * 2.0).sum())
    kinds = [(event.lane, event.kind) for event in receipt.events]
    for expected in (("host", "launch"), ("device", "kernel"), ("device", "h2d"), ("device", "d2h"), ("host", "wait")):
        assert expected in kinds
    assert kinds.count(("host", "launch")) == receipt.launches == 2
    assert all(isinstance(event, Event) and 0 <= event.start <= event.end for event in receipt.events)
    assert max(event.end for event in receipt.events) <= receipt.seconds + 1e-12


def test_nested_receipts_add_up(sim):
    x = sim.asarray(np.ones(10))
    with sim.measure() as outer:
        x + 1.0
        with sim.measure() as inner:
            big = x * sim.xp.ones((1000, 10), dtype="float32")
        del big
    assert inner.launches == 2
    assert outer.launches == 3
    assert len([event for event in outer.events if event.kind == "launch"]) == 3
    assert outer.peak_bytes == inner.peak_bytes > 40_000


def test_the_host_launches_nothing():
    b = nnlab.backend("numpy")
    with b.measure() as receipt:
        b.asarray([1.0]) * 2.0
    assert set(receipt.counts.values()) == {0}
    assert receipt.seconds > 0
