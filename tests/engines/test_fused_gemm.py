"""The fused engine on wide networks: its plan, its refusals, what sim books, and its kernels compiled for the host."""

from __future__ import annotations

import shutil
import sys

import numpy as np
import pytest

import nnlab
from nnlab import nn
from nnlab.engines import engine
from nnlab.engines.chain import Chain, chain, loss_number, optimizer_number, optimizer_settings
from nnlab.engines.fused import FusedSession, fused_plans
from nnlab.engines.fused_gemm import MOST_INPUTS, MOST_WIDTH, gemm_plan
from nnlab.engines.fused_plan import Card, Run
from nnlab.errors import EngineCannot
from nnlab.nn.losses import LOSSES
from nnlab.optim import SGD, Adam, Momentum, TrainState, constant, cosine
from tests.engines.on_host.products import HostProducts, compiled

H200 = Card((9, 0), 232_448)
PICTURE = Run(65_536, batched=False, loss=0, optimizer=2, memories=2, settings={})


def chain_of(*widths, activation="sine", omega=30.0):
    layers = len(widths) - 1
    return Chain(widths, (1,) * layers, (*[activation] * (layers - 1), "linear"), (omega,) * layers)


SIREN = chain_of(2, 256, 256, 256, 256, 1)


def test_a_plan_pads_widths_and_splits_rows_over_the_card():
    plan = gemm_plan(chain_of(2, 256, 200, 60, 1), PICTURE, H200, products=1)
    assert plan.padded == (2, 256, 256, 64, 1)
    assert [plan.tile(level) for level in (1, 2, 3)] == [128, 128, 64]
    assert plan.groups == {1: [1], 2: [2]}
    assert plan.splits == {1: 66, 2: 132}, "two blocks and one for each share, and 132 at a time"
    assert gemm_plan(SIREN, PICTURE, H200, products=1).splits == {1: 22}, "three layers in one launch"
    assert gemm_plan(SIREN, PICTURE._replace(rows=100), H200, products=1).splits == {1: 4}


@pytest.mark.parametrize(("shared_bytes", "tile", "stages"), [(166_912, 128, 2), (101_376, 64, 2), (232_448, 128, 3)])
def test_a_card_with_less_shared_memory_gets_smaller_blocks(shared_bytes, tile, stages):
    plan = gemm_plan(SIREN, PICTURE, Card((8, 6), shared_bytes), products=3)
    assert (plan.tile(1), plan.stages) == (tile, stages)
    assert 4 * plan.product_floats(256, tile) <= shared_bytes
    assert gemm_plan(SIREN, PICTURE, Card((8, 6), 48_000), products=3) is None


def test_equal_layers_share_a_kernel():
    source = gemm_plan(SIREN, PICTURE, H200, products=3).source
    assert [line for line in source.splitlines() if line.endswith("(1)")] == ["BACKWARD(1)", "FORWARD(1)", "WEIGHTS(1)"]
    assert "FORWARD(2)" not in source
    assert "#define PRODUCTS 3" in source
    other = gemm_plan(
        SIREN.__class__(SIREN.widths, SIREN.biases, SIREN.activations, (30, 30, 20, 30, 0)), PICTURE, H200, products=1
    )
    assert [other.same("forward", layer) for layer in (1, 2, 3)] == [1, 2, 1]
    assert [other.same("backward", layer) for layer in (1, 2, 3)] == [1, 2, 3]
    assert [other.same("weights", layer) for layer in (1, 2, 3)] == [1, 1, 1]


@pytest.mark.parametrize(
    "network",
    [
        chain_of(2, 256, 1),
        chain_of(MOST_INPUTS + 1, 256, 256, 1),
        chain_of(2, MOST_WIDTH + 1, 256, 1),
        chain_of(2, 256, 256, 9),
    ],
    ids=["one hidden layer", "inputs", "width", "outputs"],
)
def test_what_does_not_fit_has_no_plan(network):
    assert gemm_plan(network, PICTURE, H200, products=1) is None
    assert gemm_plan(SIREN, PICTURE, Card((7, 5), 65_536), products=1) is None


def state_and_data(b, sizes, rows, optimizer=None):
    rng = np.random.default_rng(0)
    model = nn.siren(sizes, omega_0=4.0, backend=b, rng=rng)
    state = TrainState(model, LOSSES["mse"], optimizer or Adam(), constant(1e-3), steps=9, log_every=1)
    state.optimizer.prepare(model.parameters)
    return state, b.asarray(rng.uniform(-1, 1, (rows, sizes[0]))), b.asarray(rng.uniform(0, 1, (rows, sizes[-1])))


def test_refuses_more_activations_than_the_device_has_memory_for():
    b = nnlab.backend("sim", memory=2**24)
    state, x, y = state_and_data(b, [2, 256, 256, 1], 20_000)
    with pytest.raises(EngineCannot, match=r"keeps \d+ MiB of activations .* has \d+ MiB free: take batches"):
        engine("fused-tf32").prepare(state, x, y)


def test_memory_counts_levels_slopes_and_sums():
    level, sums = 4 * 65_536 * 256, 4 * 22 * 256 * 256
    assert gemm_plan(SIREN, PICTURE, H200, products=1).memory_bytes == 7 * level + 3 * sums
    assert gemm_plan(SIREN, PICTURE, H200, products=3).memory_bytes == 8 * level + 3 * sums


def test_few_rows_of_a_small_network_stay_with_the_loops():
    b = nnlab.backend("sim")
    small, large = (fused_plans(*state_and_data(b, [2, 20, 20, 1], rows), products=3) for rows in (100, 40_000))
    assert small[0].kernel == "loop_rows"
    assert large[0].kernel == "gemm"


def test_sim_books_every_launch_of_a_step():
    b, ends = nnlab.backend("sim"), []
    for name in ("fused-tf32", "eager"):
        state, x, y = state_and_data(b, [2, 70, 70, 70, 1], 5_000)
        session = engine(name).prepare(state, x, y)
        with b.measure() as receipt:
            session.advance(5)
        ends.append(b.to_host(state.model.parameters["2.weight"]))
        if name != "eager":
            counts, launches = receipt.by_operation(), receipt.launches
    assert (counts["load"], counts["forward_2"], counts["weights_1"], counts["update_all"]) == (1, 5, 5, 5)
    assert launches == 1 + 5 * 8
    np.testing.assert_allclose(*ends, rtol=1e-5)


STEPS = 2
SMALL_CARD = Card((8, 0), 140_000, 1)  # a block has several tiles, and the widest matrix has no room to stay
# products, sizes, activation, output, loss, optimiser, rows, batch size, bias
CASES = [
    (1, [2, 200, 100, 1], "sine", "linear", "mse", Momentum, 50, None, True),
    (3, [2, 50, 60, 1], "sine", "linear", "mse", Adam, 50, None, True),
    (3, [3, 100, 40, 3], "tanh", "sigmoid", "bce", SGD, 40, None, True),
    (1, [5, 20, 30, 20, 2], "leaky_relu", "linear", "sse", Momentum, 400, 300, False),
]


def built(case, backend):
    _, sizes, activation, output, loss, optimizer, rows, batch_size, bias = case
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1, 1, (rows, sizes[0])), rng.uniform(0.1, 0.9, (rows, sizes[-1]))
    kind = "tanh" if activation == "sine" else activation
    model = nn.mlp(sizes, activation=kind, output=output, bias=bias, backend=backend, rng=rng)
    if activation == "sine":
        model = nn.Sequential([nn.Sine(3.0) if isinstance(part, nn.Activation) else part for part in model.layers])
    rate = 0.01 if optimizer is Adam else {"mse": 0.05, "bce": 0.5, "sse": 0.1 / rows}[loss]
    state = TrainState(model, LOSSES[loss], optimizer(), cosine(rate, 40), steps=STEPS, log_every=1)
    state.batch_size, state.batch_seed = batch_size, None if batch_size is None else 3
    state.optimizer.prepare(model.parameters)
    return state, backend.asarray(x), backend.asarray(y)


def plan_of(state, x, products):
    run = Run(
        state.batch_size or len(x),
        state.batch_size is not None,
        loss_number(state.loss),
        optimizer_number(state.optimizer),
        len(state.optimizer.memories),
        optimizer_settings(state.optimizer),
    )
    return gemm_plan(chain(state.model), run, SMALL_CARD, products=products)


on_the_host = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("g++") is None, reason="needs Linux and g++ to compile kernels for the host"
)


@on_the_host
@pytest.mark.parametrize("case", CASES, ids=[f"{case[2]}-{case[0]}" for case in CASES])
def test_kernels_against_float64_and_against_themselves(tmp_path, host64, case):
    products = case[0]
    exact, x, y = built(case, host64)
    start = {name: value.copy() for name, value in exact.model.parameters.items()}
    expected = engine("eager").prepare(exact, x, y).advance(STEPS)
    library, ends = None, []
    for seed, cuts in ((0, [STEPS]), (5, [1] * STEPS)):
        state, x, y = built(case, nnlab.backend("numpy"))
        plan = plan_of(state, x, products)
        library = library or compiled(plan, tmp_path)
        session = FusedSession(state, x, y, HostProducts(plan, state, x, y, library, seed))
        ends.append((np.concatenate([session.advance(n) for n in cuts]), state.arrays))
    (losses, arrays), (again, others) = ends
    np.testing.assert_allclose(losses, expected, rtol={1: 2e-3, 3: 1e-5}[products])
    parameters = exact.model.parameters
    off = sum(float(((arrays[name] - value) ** 2).sum()) for name, value in parameters.items())
    way = sum(float(((value - start[name]) ** 2).sum()) for name, value in parameters.items())
    assert np.sqrt(off / way) < {1: 2e-3, 3: 2e-5}[products]
    np.testing.assert_array_equal(again, losses)
    for name, value in arrays.items():
        np.testing.assert_array_equal(others[name], value, err_msg=name)


@on_the_host
@pytest.mark.parametrize("case", [CASES[0], CASES[3]], ids=["sine", "leaky_relu"])
@pytest.mark.parametrize("bits", [0x7FFFFFFF, 0xFFFFFFFF])
def test_nan_reaches_the_loss(tmp_path, case, bits):
    """A card's own NaN has all bits set, but the sign or also that: half a unit more must not make a number of it."""
    state, x, y = built(case, nnlab.backend("numpy"))
    state.model.parameters["0.weight"].view(np.uint32)[0, 0] = bits
    plan = plan_of(state, x, case[0])
    losses = FusedSession(state, x, y, HostProducts(plan, state, x, y, compiled(plan, tmp_path), 0)).advance(1)
    assert np.isnan(losses).all()
