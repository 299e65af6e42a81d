"""What the fused engine takes and refuses, which plan it makes, and what the simulated GPU books for it."""

from __future__ import annotations

import numpy as np
import pytest

import nnlab
from nnlab import nn
from nnlab.engines import engine, fused, fused_tile
from nnlab.engines.chain import chain
from nnlab.engines.fused_grid import grid_plans
from nnlab.engines.fused_plan import Card, Run, plans
from nnlab.engines.fused_tile import tile_plan
from nnlab.errors import EngineCannot
from nnlab.nn import losses
from nnlab.optim import SGD, Adam, Momentum, Optimizer, TrainState, constant
from nnlab.training import fit

H200 = Card((9, 0), 232_448)
A100 = Card((8, 0), 166_912)


def run_of(rows, *, batched=False, memories=0):
    return Run(rows, batched, loss=0, optimizer=0, memories=memories, settings={})


def network(sizes, backend=None, **options):
    backend = backend or nnlab.backend("sim")
    return nn.mlp(sizes, backend=backend, rng=np.random.default_rng(0), **options)


def state_of(model, *, loss=losses.mse, optimizer=None, batch_size=None):
    optimizer = optimizer or SGD()
    state = TrainState(model, loss, optimizer, constant(0.1), steps=100, log_every=10, batch_size=batch_size)
    state.batch_seed = None if batch_size is None else 1
    optimizer.prepare(model.parameters)
    return state


def data(b, rows, inputs, outputs):
    rng = np.random.default_rng(1)
    return b.asarray(rng.uniform(-1, 1, (rows, inputs))), b.asarray(rng.uniform(0, 1, (rows, outputs)))


def test_small_networks_share_rows_and_small_batches_share_weights():
    estate = next(plans(chain(network([6, 64, 1])), run_of(321), H200))
    assert (estate.kernel, estate.cluster, estate.barriers) == ("loop_rows", 8, 1)
    large = chain(network([784, 256, 128, 10], activation="leaky_relu", bias=False))
    for rows in (1, 32):
        plan = next(plans(large, run_of(rows), H200))
        assert (plan.kernel, plan.cluster, plan.barriers) == ("loop_weights", 16, 3)
    assert not list(plans(large, run_of(33), H200))
    assert not list(plans(large, run_of(1), A100)), "one block alone cannot hold it"


def test_pictures_get_tiles_over_the_whole_card():
    pyramid = chain(network([2, 64, 64, 128, 64, 32, 32, 32, 1]))
    plan = tile_plan(pyramid, run_of(40_000), H200, products=3)
    assert (plan.kernel, plan.blocks) == ("tile", 132)
    assert plan.shared_bytes <= H200.shared_bytes
    assert plan.slice_steps * plan.step_seconds <= 0.1
    assert "3xTF32" in str(plan)
    assert "tile(float" in plan.source
    assert "mma.sync" in plan.source
    assert tile_plan(pyramid, run_of(4_095), H200, products=3) is None, "too few tiles for the card"
    assert tile_plan(pyramid, run_of(40_000), A100, products=3) is None, "its shared memory is too small"
    for sizes in ([2, 256, 1], [2, 1]):
        assert tile_plan(chain(network(sizes)), run_of(40_000), H200, products=3) is None


def test_tiles_take_many_steps_in_a_launch(monkeypatch):
    monkeypatch.setattr(fused_tile, "LEAST_ROWS", 100)
    b = nnlab.backend("sim")
    ends = []
    for name in ("fused", "eager"):
        model, (x, y) = network([2, 8, 1], b), data(b, 200, 2, 1)
        session = engine(name).prepare(state_of(model), x, y)
        with b.measure() as receipt:
            session.advance(7)
        ends.append(b.to_host(model.parameters["0.weight"]))
        if name == "fused":
            counts = receipt.by_operation()
    assert counts["tile"] == 1
    np.testing.assert_allclose(*ends, rtol=1e-5)


DISPATCH = chain(network([784, 256, 128, 10], activation="leaky_relu", bias=False))


@pytest.mark.parametrize("products", [1, 3])
@pytest.mark.parametrize("rows", [32, 256, 1024, 4096])
def test_middling_batches_get_the_whole_card(rows, products):
    plan = next(grid_plans(DISPATCH, run_of(rows, batched=True, memories=2), H200, products=products))
    assert (plan.kernel, plan.barriers) == ("loop_grid", 3)
    assert plan.blocks == {1: 132, 2: 132, 4: 120, 8: 120}[plan.cluster], "as many as an H200 takes at once"
    assert plan.shared_bytes <= H200.shared_bytes
    assert plan.slice_steps * plan.step_seconds <= 0.1
    assert "loop_grid(" in plan.source
    assert ("3xTF32" if products == 3 else "TF32") in str(plan)


def test_a_card_without_clusters_gets_blocks_of_their_own():
    large = Card((8, 0), 232_448, 108)
    plan = next(grid_plans(DISPATCH, run_of(256), large, products=1))
    assert (plan.cluster, plan.blocks) == (1, 108)
    assert not list(grid_plans(DISPATCH, run_of(256), A100, products=1)), "its shared memory is too small"


def test_the_whole_card_is_not_for_large_batches_and_wide_layers():
    assert not list(grid_plans(DISPATCH, run_of(4097), H200, products=1))
    assert not list(grid_plans(chain(network([4, 2049, 1])), run_of(64), H200, products=1))


def test_tf32_takes_small_batches_too():
    b = nnlab.backend("sim")
    session = engine("fused-tf32").prepare(state_of(network([6, 64, 1], b)), *data(b, 321, 6, 1))
    steps = session.loop.plan.slice_steps
    with b.measure() as receipt:
        session.advance(2 * steps + 1)
    assert receipt.by_operation()["loop_grid"] == receipt.launches == 3


def test_an_older_card_gets_one_block():
    found = list(plans(chain(network([6, 64, 1])), run_of(321), A100))
    assert found
    assert {plan.cluster for plan in found} == {1}


@pytest.mark.parametrize("rows", [1, 3, 40, 321, 5000])
@pytest.mark.parametrize("sizes", [[2, 8, 1], [57, 32, 1], [2, 64, 64, 1]])
def test_plans_stay_within_the_card(rows, sizes):
    for plan in plans(chain(network(sizes)), run_of(rows, memories=2), H200):
        assert plan.shared_bytes <= H200.shared_bytes
        assert plan.threads % 32 == 0
        assert 64 <= plan.threads <= 1024
        assert plan.slice_steps * plan.step_seconds <= 0.1
        assert "__global__" in plan.source


def test_a_launch_takes_as_many_steps_as_the_plan_says():
    b = nnlab.backend("sim")
    model = network([6, 64, 1], b)
    x, y = data(b, 321, 6, 1)
    session = engine("fused").prepare(state_of(model), x, y)
    steps = session.loop.plan.slice_steps
    with b.measure() as receipt:
        session.advance(2 * steps + 1)
    assert receipt.by_operation()["loop_rows"] == 3
    assert (receipt.launches, receipt.h2d_copies, receipt.d2h_copies, receipt.syncs) == (3, 3, 0, 3)


def test_batches_go_up_beside_the_rates():
    b = nnlab.backend("sim")
    session = engine("fused").prepare(state_of(network([6, 8, 1], b), batch_size=10), *data(b, 50, 6, 1))
    with b.measure() as receipt:
        session.advance(7)
    assert (receipt.launches, receipt.h2d_copies, receipt.h2d_bytes) == (1, 2, 4 * 7 + 4 * 7 * 10)


def test_settings_of_any_kind_of_number_reach_the_source_as_floats():
    b = nnlab.backend("sim")
    model = nn.siren([2, 8, 1], backend=b, rng=np.random.default_rng(0))
    model.layers[1].omega_0 = np.float64(20)
    optimizers = {"DECAY 0.0f": Momentum(), "BETA1 0.5f": Adam()}
    (momentum, adam) = optimizers.values()
    momentum.momentum, adam.beta1 = 0, np.float64(0.5)
    for line, optimizer in optimizers.items():
        for name in ("fused", "fused-tf32"):
            sizes = engine(name).prepare(state_of(model, optimizer=optimizer), *data(b, 200, 2, 1)).loop.plan.sizes
            assert f"#define {line}\n" in sizes
            assert "#define OMEGAS 20.0f, 0.0f\n" in sizes


class Odd(Optimizer):
    name = "odd"

    def _change(self, name, parameter, gradient, *factors):
        parameter -= gradient


def refusals(b):
    rng = np.random.default_rng(0)

    def my_loss(prediction, target):
        return losses.mse(prediction, target)

    plain = network([3, 4, 1], b)
    twice = nn.Sequential([nn.Linear(3, 1, backend=b, rng=rng), nn.Activation("tanh"), nn.Activation("tanh")])
    yield "my_loss", state_of(plain, loss=my_loss), 20
    yield "Odd", state_of(plain, optimizer=Odd()), 20
    yield "layer 2, Activation", state_of(twice), 20
    yield "does not fit 3-2100-2100-1 on 100 rows", state_of(network([3, 2100, 2100, 1], b)), 100


def test_refuses_by_name_before_anything_runs():
    b = nnlab.backend("sim")
    for culprit, state, rows in refusals(b):
        x, y = data(b, rows, 3, 1)
        with b.measure() as receipt, pytest.raises(EngineCannot, match=culprit):
            engine("fused").prepare(state, x, y)
        assert receipt.launches == 0, culprit


def test_refuses_the_host_and_float64(host64):
    with pytest.raises(EngineCannot, match="lives on the host"):
        engine("fused").prepare(state_of(network([3, 4, 1], host64)), *data(host64, 20, 3, 1))
    wide = nnlab.backend("sim", dtype="float64")
    with pytest.raises(EngineCannot, match="float32, not float64"):
        engine("fused").prepare(state_of(network([3, 4, 1], wide)), *data(wide, 20, 3, 1))


def test_refuses_an_old_card(monkeypatch):
    b = nnlab.backend("sim")
    monkeypatch.setattr(fused, "_card", lambda backend: Card((7, 5), 65_536))
    with pytest.raises(EngineCannot, match=r"needs compute capability 8\.0, .* has 7\.5"):
        engine("fused").prepare(state_of(network([3, 4, 1], b)), *data(b, 20, 3, 1))


@pytest.mark.parametrize(
    ("backend", "sizes", "rows", "chosen"),
    [
        ("sim", [6, 64, 1], 321, "fused"),
        ("sim", [2, 256, 256, 1], 100, "fused"),
        ("sim", [2, 20, 20, 1], 20_000, "fused"),
        ("sim", [2, 160, 160, 1], 20_000, "fused"),
        ("sim", [57, 32, 1], 3_680, "graph"),
        ("numpy", [6, 64, 1], 321, "eager"),
        ("numpy", [2, 64, 64, 1], 5_000, "tiled"),
    ],
)
def test_auto_picks_and_says_why(capsys, backend, sizes, rows, chosen):
    b = nnlab.backend(backend)
    model, (x, y) = network(sizes, b), data(b, rows, sizes[0], 1)
    history = fit(model, x, y, loss="mse", optimizer=Adam(), rate=0.01, steps=2, engine="auto")
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 1
    assert printed[0].startswith(f"engine='auto': {chosen}, because ")
    assert history.state.engine == chosen
