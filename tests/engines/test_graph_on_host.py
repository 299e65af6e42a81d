"""The graph engine's kernels, compiled for the host: float64's numbers, however a product is cut into blocks."""

from __future__ import annotations

import dataclasses
import shutil
import sys

import numpy as np
import pytest

import nnlab
from nnlab import nn
from nnlab.engines import engine
from nnlab.engines.graph_cuts import Cut
from nnlab.engines.graph_plan import step_plan
from nnlab.nn.losses import LOSSES
from nnlab.optim import SGD, Adam, Momentum, TrainState, cosine
from tests.engines.on_host.steps import HostStep, compiled

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("g++") is None, reason="needs Linux and g++ to compile kernels for the host"
)
STEPS = 3

# sizes, activation, output, loss, optimiser, rows, batch size, bias
CASES = [
    ([6, 9, 1], "tanh", "linear", "mse", SGD, 50, None, True),
    ([3, 8, 5, 2], "sine", "linear", "mse", Adam, 40, None, True),
    ([3, 7], "relu", "sigmoid", "bce", Momentum, 40, 13, True),
    ([2, 36, 20, 3], "leaky_relu", "linear", "sse", SGD, 70, None, False),
    ([4, 5, 1], "sigmoid", "linear", "bce_with_logits", Adam, 7, 3, True),
    ([20, 12, 10], "leaky_relu", "linear", "sse", SGD, 1, None, False),
]
# cuts of all products, with the splits of the gradients
CUTS = {
    "split": (Cut(16, 16, 16, 2, 2), 3),
    "large": (Cut(64, 32, 8, 4, 2), 1),
    "in packs": (Cut(16, 32, 32, 4, 4), 2),
    "thin": (Cut(1, 8, 128, 1, 4), 1),
}


def state_and_data(case, backend):
    sizes, activation, output, loss, optimizer, rows, batch_size, bias = case
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1, 1, (rows, sizes[0])), rng.uniform(0.1, 0.9, (rows, sizes[-1]))
    kind = "tanh" if activation == "sine" else activation
    model = nn.mlp(sizes, activation=kind, output=output, bias=bias, backend=backend, rng=rng)
    if activation == "sine":
        model = nn.Sequential([nn.Sine(3.0) if isinstance(part, nn.Activation) else part for part in model.layers])
    rate = 0.01 if loss != "sse" else 0.1 / rows
    state = TrainState(model, LOSSES[loss], optimizer(), cosine(rate, 40), steps=STEPS, log_every=1)
    state.batch_size, state.batch_seed = batch_size, None if batch_size is None else 3
    state.optimizer.prepare(model.parameters)
    return state, backend.asarray(x), backend.asarray(y)


PAIRS = [(case, None) for case in CASES]
PAIRS += [(CASES[0], "large"), (CASES[1], "split"), (CASES[2], "in packs"), (CASES[3], "split"), (CASES[5], "thin")]


@pytest.mark.parametrize(("case", "cuts"), PAIRS, ids=lambda value: str(value[0]) if isinstance(value, tuple) else None)
def test_kernels_against_float64_and_against_themselves(tmp_path, host64, case, cuts):
    exact, x, y = state_and_data(case, host64)
    expected = engine("eager").prepare(exact, x, y).advance(STEPS)
    library, ends = None, []
    for seed in (0, 5):
        state, x, y = state_and_data(case, nnlab.backend("numpy"))
        plan = step_plan(state, x)
        if cuts is not None:
            (cut, splits), layers = CUTS[cuts], len(case[0]) - 1
            same = (cut,) * layers
            plan = dataclasses.replace(plan, forward=same, backward=same, gradient=same, splits=(splits,) * layers)
        library = library or compiled(plan, tmp_path)
        step = HostStep(plan, state, x, y, library, seed)
        for _ in range(STEPS):
            step()
        ends.append((step.losses, state.arrays))
    (losses, arrays), (again, others) = ends
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    for name, value in exact.arrays.items():
        np.testing.assert_allclose(arrays[name], value, rtol=1e-3, atol=1e-6, err_msg=name)
    np.testing.assert_array_equal(again, losses)
    for name, value in arrays.items():
        np.testing.assert_array_equal(others[name], value, err_msg=name)


def test_nan_reaches_the_loss(tmp_path):
    """Past ReLU and cut-off probabilities."""
    state, x, y = state_and_data(([3, 7, 2], "relu", "sigmoid", "bce", SGD, 40, None, True), nnlab.backend("numpy"))
    state.model.parameters["0.weight"][0, 0] = np.nan
    plan = step_plan(state, x)
    step = HostStep(plan, state, x, y, compiled(plan, tmp_path), 0)
    step()
    assert np.isnan(step.losses[0])
