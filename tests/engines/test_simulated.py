"""Engines on the simulated GPU: what the simulation adds must not be felt and not be booked."""

from __future__ import annotations

import numpy as np
import pytest

import nnlab
from nnlab import nn
from nnlab.engines import base, engine
from nnlab.engines.eager import EagerSession
from nnlab.nn import losses
from nnlab.optim import SGD, Adam, TrainState, constant

RUNS = {  # engine, network, rows, a launch that it books
    "fused, small": ("fused", [6, 8, 1], 50, "loop_rows"),
    "fused, whole card": ("fused-tf32", [6, 64, 64, 1], 50, "loop_grid"),
    "fused, wide": ("fused", [2, 130, 130, 1], 4_200, "head"),
    "graph": ("graph", [6, 8, 1], 50, "graph"),
}


@pytest.fixture(params=RUNS)
def case(request):
    return RUNS[request.param]


def run(name, sizes, rows, batch_size=None):
    """What a session of this run needs: its engine, its state and its data."""
    b = nnlab.backend("sim")
    rng = np.random.default_rng(0)
    x, y = b.asarray(rng.uniform(-1, 1, (rows, sizes[0]))), b.asarray(rng.uniform(0, 1, (rows, sizes[-1])))
    model = nn.mlp(sizes, backend=b, rng=rng)
    state = TrainState(model, losses.mse, Adam(), constant(0.01), steps=100, log_every=10, batch_size=batch_size)
    state.batch_seed = None if batch_size is None else 1
    state.optimizer.prepare(model.parameters)
    return engine(name), state, x, y


@pytest.mark.parametrize("batched", [False, True])
def test_stop_is_asked_before_every_step(case, batched):
    name, sizes, rows, launch = case
    batch_size = rows - rows // 50 if batched else None
    runner, state, *data = run(name, sizes, rows, batch_size)
    b, session = state.model.backend, runner.prepare(state, *data)
    asked = iter([False] * 5)
    session.stop = lambda: next(asked, True)
    with b.measure() as receipt:
        seen = b.to_host(session.advance(100))
    assert any(operation.startswith(launch) for operation in receipt.by_operation())
    assert 0 < len(seen) == state.step == state.optimizer.step < 6
    session.stop = lambda: False
    seen = np.concatenate([seen, b.to_host(session.advance(3))])

    runner, other, *data = run(name, sizes, rows, batch_size)
    at_once = other.model.backend.to_host(runner.prepare(other, *data).advance(len(seen)))
    np.testing.assert_array_equal(seen, at_once)
    for key, value in state.arrays.items():
        np.testing.assert_array_equal(b.to_host(value), other.model.backend.to_host(other.arrays[key]), err_msg=key)


def test_preparing_reads_nothing_back(case):
    name, sizes, rows, _ = case
    runner, state, x, y = run(name, sizes, rows)
    with state.model.backend.measure() as receipt:
        runner.prepare(state, x, y)
    assert receipt.d2h_copies == receipt.d2h_bytes == 0


@pytest.mark.parametrize("name", ["eager", "fused"])
def test_the_loss_of_a_large_picture_is_taken_piece_by_piece(monkeypatch, name):
    """A forward pass over all rows at once would keep 20 MB of layers' outputs."""
    monkeypatch.setattr(base, "KEPT", 2**18)
    b = nnlab.backend("sim", memory=2**23)
    rng = np.random.default_rng(0)
    x, y = b.asarray(rng.uniform(-1, 1, (20_000, 2))), b.asarray(rng.uniform(0, 1, (20_000, 1)))
    model = nn.mlp([2, 64, 64, 1], backend=b, rng=rng)
    state = TrainState(model, losses.mse, SGD(), constant(0.01), steps=2, log_every=2)
    state.optimizer.prepare(model.parameters)
    if name == "fused":
        session = engine("fused").prepare(state, x, y)
        session.advance(2)
    else:
        session = EagerSession(state, x, y)
    seen = float(session.evaluate())
    whole = nnlab.backend("numpy")
    p = model.to(whole)(whole.asarray(b.to_host(x)))
    assert seen == pytest.approx(float(losses.mse(p, b.to_host(y))[0]), rel=1e-5)


@pytest.mark.parametrize("name", ["graph", "fused", "fused-tf32"])
def test_kernels_of_our_own_are_slower_on_a_slower_card(name):
    """The cub's step holds 5.9 billion operations, for which an RTX 4060 Laptop needs 511 us at the least."""
    took = {}
    for device in ("h200", "laptop"):
        b = nnlab.backend("sim", device=device)
        rng = np.random.default_rng(0)
        x, y = b.asarray(rng.uniform(-1, 1, (40_000, 2))), b.asarray(rng.uniform(0, 1, (40_000, 1)))
        model = nn.mlp([2, 64, 64, 128, 64, 32, 32, 32, 1], backend=b, rng=rng)
        state = TrainState(model, losses.mse, SGD(), constant(0.01), steps=2, log_every=2)
        state.optimizer.prepare(model.parameters)
        session = engine(name).prepare(state, x, y)
        session.advance(1)  # compiles
        with b.measure() as receipt:
            session.advance(1)
        took[device] = receipt.seconds
    assert took["laptop"] > 511e-6 > took["h200"]
