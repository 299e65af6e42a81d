"""The CUDA kernels of the fused engine, compiled for the host: float64's numbers, whatever the order of the threads."""

from __future__ import annotations

import shutil
import sys

import numpy as np
import pytest

import nnlab
from nnlab import nn
from nnlab.engines import engine, fused_grid, fused_tile
from nnlab.engines.chain import chain, loss_number, optimizer_number, optimizer_settings
from nnlab.engines.fused import FusedSession
from nnlab.engines.fused_plan import Card, Plan, Run, _rows_plans, _weights_plans
from nnlab.engines.fused_tile import tile_plan
from nnlab.nn.losses import LOSSES
from nnlab.optim import SGD, Adam, Momentum, TrainState, cosine
from tests.engines.on_host.kernels import HostLoop, compiled

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("g++") is None, reason="needs Linux and g++ to compile kernels for the host"
)
STEPS = 6

# sizes, activation, output, loss, optimiser, rows, batch size, bias, blocks
ROWS = [
    ([6, 9, 1], "tanh", "linear", "mse", SGD, 90, None, True, 4),
    ([3, 8, 5, 2], "sine", "linear", "mse", Adam, 40, None, True, 2),
    ([3, 7], "relu", "sigmoid", "bce", Momentum, 40, 13, True, 1),
    ([2, 6, 4], "leaky_relu", "linear", "sse", SGD, 300, None, False, 1),
    ([4, 5, 1], "sigmoid", "linear", "bce_with_logits", Adam, 7, 3, True, 1),
]
WEIGHTS = [
    ([21, 36, 10], "leaky_relu", "linear", "sse", SGD, 1, None, False, 4),
    ([5, 20, 10, 6, 3], "tanh", "linear", "mse", Adam, 3, None, True, 2),
    ([13, 20, 18, 5], "sine", "linear", "bce_with_logits", Momentum, 20, 9, True, 4),
    ([6, 17, 9, 2], "relu", "sigmoid", "bce", Adam, 8, None, True, 1),
]
TILES = [
    ([5, 12, 40, 2], "tanh", "linear", "mse", Adam, 150, None, True, 2),
    ([2, 20, 17, 33, 1], "relu", "sigmoid", "bce", SGD, 100, 70, True, 1),
    ([3, 100, 18, 3], "sigmoid", "linear", "bce_with_logits", Momentum, 70, None, False, 2),
    ([2, 64, 48, 1], "leaky_relu", "linear", "sse", SGD, 64, None, True, 1),
]
GRID = [
    ([21, 36, 10], "leaky_relu", "linear", "sse", SGD, 40, None, False, 2),
    ([5, 40, 70, 3], "tanh", "linear", "mse", Adam, 20, None, True, 1),
    ([3, 9, 70, 2], "tanh", "linear", "mse", Momentum, 270, None, True, 1),
    ([13, 33, 40, 35], "sine", "linear", "bce_with_logits", Momentum, 60, 19, True, 4),
    ([6, 9], "relu", "sigmoid", "bce", Adam, 33, 17, True, 2),
]


def state_and_data(case, backend):
    sizes, activation, output, loss, optimizer, rows, batch_size, bias, _ = case
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1, 1, (rows, sizes[0])), rng.uniform(0.1, 0.9, (rows, sizes[-1]))
    kind = "tanh" if activation == "sine" else activation
    model = nn.mlp(sizes, activation=kind, output=output, bias=bias, backend=backend, rng=rng)
    if activation == "sine":
        model = nn.Sequential([nn.Sine(3.0) if isinstance(part, nn.Activation) else part for part in model.layers])
    state = TrainState(
        model, LOSSES[loss], optimizer(), cosine(0.01 if loss != "sse" else 0.1 / rows, 40), steps=STEPS, log_every=1
    )
    state.batch_size, state.batch_seed = batch_size, None if batch_size is None else 3
    state.optimizer.prepare(model.parameters)
    return state, backend.asarray(x), backend.asarray(y)


def plan_of(case, state, kernel, products=3) -> Plan:
    run = Run(
        state.batch_size or case[5],
        state.batch_size is not None,
        loss_number(state.loss),
        optimizer_number(state.optimizer),
        len(state.optimizer.memories),
        optimizer_settings(state.optimizer),
    )
    card = Card((9, 0), 232_448, case[-1])
    if kernel == "tile":
        return tile_plan(chain(state.model), run, card, products=products)
    if kernel == "loop_grid":
        two_clusters = card._replace(multiprocessors=2 * case[-1])
        return fused_grid.grid_plan(chain(state.model), run, two_clusters, case[-1], products)
    make = _rows_plans if kernel == "loop_rows" else lambda *given: _weights_plans(*given, threads=64)
    return next(plan for plan in make(chain(state.model), run, card) if plan.cluster <= case[-1])


CASES = [
    *[("loop_rows", case) for case in ROWS],
    *[("loop_weights", case) for case in WEIGHTS],
    *[("tile", case) for case in TILES],
    *[("loop_grid", case) for case in GRID],
]


@pytest.mark.parametrize(("kernel", "case"), CASES)
def test_kernel_against_float64_and_against_itself(tmp_path, monkeypatch, host64, kernel, case):
    monkeypatch.setattr(fused_tile, "LEAST_ROWS", 1)
    exact, x, y = state_and_data(case, host64)
    expected = engine("eager").prepare(exact, x, y).advance(STEPS)
    library, ends = None, []
    for seed, cuts in ((0, [STEPS]), (5, [1, STEPS - 1])):
        state, x, y = state_and_data(case, nnlab.backend("numpy"))
        plan = plan_of(case, state, kernel)
        assert (plan.blocks if kernel == "tile" else plan.cluster) == case[-1]
        library = library or compiled(plan, tmp_path)
        session = FusedSession(state, x, y, HostLoop(plan, state, x, y, library, seed))
        ends.append((np.concatenate([session.advance(n) for n in cuts]), state.arrays))
    (losses, arrays), (again, others) = ends
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    for name, value in exact.arrays.items():
        np.testing.assert_allclose(arrays[name], value, rtol=1e-3, atol=1e-6, err_msg=name)
    np.testing.assert_array_equal(again, losses)
    for name, value in arrays.items():
        np.testing.assert_array_equal(others[name], value, err_msg=name)


def test_tiles_in_tf32_keep_three_digits(tmp_path, monkeypatch, host64):
    """One step of descent shows the gradients: within 2e-3 of the largest of each tensor, and rounded indeed."""
    monkeypatch.setattr(fused_tile, "LEAST_ROWS", 1)
    case = ([5, 12, 40, 2], "tanh", "linear", "mse", SGD, 150, None, True, 2)
    exact, x, y = state_and_data(case, host64)
    start = {name: value.copy() for name, value in exact.arrays.items()}
    engine("eager").prepare(exact, x, y).advance(1)
    state, x, y = state_and_data(case, nnlab.backend("numpy"))
    plan = plan_of(case, state, "tile", products=1)
    FusedSession(state, x, y, HostLoop(plan, state, x, y, compiled(plan, tmp_path), 3)).advance(1)
    for name, value in exact.arrays.items():
        away = np.abs(state.arrays[name] - value).max() / np.abs(value - start[name]).max()
        assert 1e-5 < away < 2e-3, name


OF_A_CARD, OF_BOTH_SIGNS = (0x7FFFFFFF,), (0x7FFFFFFF, 0xFFFFFFFF)
NANS = [
    *[("loop_rows", 3, bits) for bits in OF_A_CARD],
    *[("loop_weights", 3, bits) for bits in OF_A_CARD],
    *[(kernel, 3, bits) for kernel in ("tile", "loop_grid") for bits in OF_A_CARD],
    *[(kernel, 1, bits) for kernel in ("tile", "loop_grid") for bits in OF_BOTH_SIGNS],
]


@pytest.mark.parametrize(("kernel", "products", "bits"), NANS)
def test_nan_reaches_the_loss(tmp_path, monkeypatch, kernel, products, bits):
    """Past ReLU, cut-off probabilities and TF32's half a unit, which could make a number of a NaN with all bits set."""
    monkeypatch.setattr(fused_tile, "LEAST_ROWS", 1)
    case = ([5, 12, 40, 2], "relu", "sigmoid", "bce", SGD, 20, None, True, 2)
    state, x, y = state_and_data(case, nnlab.backend("numpy"))
    state.model.parameters["0.weight"].view(np.uint32)[0, 0] = bits
    plan = plan_of(case, state, kernel, products=products)
    losses = FusedSession(state, x, y, HostLoop(plan, state, x, y, compiled(plan, tmp_path), 0)).advance(2)
    assert np.isnan(losses).all()
