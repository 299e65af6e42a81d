"""On a real card: every engine, activation, loss and optimiser against float64 on the host."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import nnlab
from nnlab import nn
from nnlab.engines import engine, fused_tile
from nnlab.engines.fused import FusedSession, fused_plans
from nnlab.engines.fused_cupy import first_that_runs
from nnlab.engines.graph import GraphSession
from nnlab.engines.graph_cuts import Cut
from nnlab.engines.graph_plan import step_plan
from nnlab.nn.losses import LOSSES
from nnlab.optim import SGD, Adam, Momentum, TrainState, cosine

pytestmark = pytest.mark.gpu
STEPS = 60
ACTIVATIONS = ("linear", "tanh", "sigmoid", "relu", "leaky_relu", "sine")
EVERY = list(itertools.product(ACTIVATIONS, LOSSES, (SGD, Momentum, Adam)))


@pytest.fixture(scope="module")
def card():
    usable, reason = nnlab.gpu_available()
    if not usable:
        pytest.skip(reason)
    return nnlab.backend("cupy")


def build(sizes, activation, loss, backend):
    rng = np.random.default_rng(5)
    layers = []
    scale = 0.1 if activation == "sine" else 1.0
    for fan_in, fan_out in itertools.pairwise(sizes):
        start = {
            "weight": rng.normal(0, scale / np.sqrt(fan_in), (fan_in, fan_out)),
            "bias": rng.normal(0, 0.1, fan_out),
        }
        layers += [
            nn.Linear(fan_in, fan_out, backend=backend, start=start),
            nn.Sine(5.0) if activation == "sine" else nn.Activation(activation),
        ]
    layers[-1] = nn.Activation("sigmoid" if loss == "bce" else "linear")
    return nn.Sequential(layers)


def run(backend, prepare, *, sizes, rows, activation, loss, optimizer, batch_size=None, cuts=(STEPS,), order=None):
    """order: seed of a shuffle of the rows, which changes nothing but the order of sums."""
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1, 1, (rows, sizes[0])), rng.uniform(0.1, 0.9, (rows, sizes[-1]))
    if order is not None:
        shuffled = np.random.default_rng(order).permutation(rows)
        x, y = x[shuffled], y[shuffled]
    x, y = backend.asarray(x), backend.asarray(y)
    model = build(sizes, activation, loss, backend)
    rate = 0.01 if loss != "sse" else 0.01 / (batch_size or rows)
    state = TrainState(model, LOSSES[loss], optimizer(), cosine(rate, 2 * STEPS), steps=STEPS, log_every=10)
    state.batch_size, state.batch_seed = batch_size, None if batch_size is None else 3
    state.optimizer.prepare(model.parameters)
    start = {name: backend.to_host(value).copy() for name, value in model.parameters.items()}
    session = prepare(state, x, y)
    seen = np.concatenate([backend.to_host(session.advance(n)) for n in cuts])
    return seen, start, {name: backend.to_host(value) for name, value in model.parameters.items()}


def distance(found, reference):
    """Distance over displacement: how far from float64's end, against how far float64 went."""
    _, start, end = reference
    off = sum(float(((found[2][name] - end[name]) ** 2).sum()) for name in end)
    way = sum(float(((end[name] - start[name]) ** 2).sum()) for name in end)
    return np.sqrt(off / way)


def numpys_own(case, reference):
    """How far NumPy's float32 is off: the second worst of four orders of the rows, as one may cross a ReLU's kink."""
    runs = (run(nnlab.backend("numpy"), engine("eager").prepare, **case, order=order) for order in (None, 1, 2, 3))
    return sorted(distance(found, reference) for found in runs)[-2]


def fused_with(kernel, products=3):
    """The fused engine's preparation, held to one of its kernels."""

    def prepare(state, x, y):
        fitting = [plan for plan in fused_plans(state, x, y, products=products) if plan.kernel == kernel]
        return FusedSession(state, x, y, first_that_runs(fitting, state, x, y))

    return prepare


def graph_of_operations(state, x, y):
    """The graph engine's preparation for networks that its kernels do not know."""
    return GraphSession(state, x, y, None)


def graph_in_parts(state, x, y):
    """The graph engine's preparation, with large pieces, and the rows of a gradient dealt out among blocks."""
    cut, layers = Cut(64, 32, 16, 4, 4), len(state.model.parameters) // 2
    plan = step_plan(state, x)
    cuts = {"forward": (cut,) * layers, "backward": (cut,) * layers, "gradient": (cut,) * layers}
    return GraphSession(state, x, y, dataclasses.replace(plan, **cuts, splits=(3,) * layers))


WAYS = {
    "eager": (engine("eager").prepare, {"sizes": (5, 12, 9, 2), "rows": 70}),
    "graph": (engine("graph").prepare, {"sizes": (5, 12, 9, 2), "rows": 70}),
    "graph in parts": (graph_in_parts, {"sizes": (5, 40, 72, 2), "rows": 150}),
    "graph of operations": (graph_of_operations, {"sizes": (5, 12, 9, 2), "rows": 70}),
    "loop_rows": (fused_with("loop_rows"), {"sizes": (5, 12, 9, 2), "rows": 70}),
    "loop_weights": (fused_with("loop_weights"), {"sizes": (21, 36, 70, 10), "rows": 30}),
    "loop_grid": (fused_with("loop_grid"), {"sizes": (21, 36, 70, 10), "rows": 70}),
    "loop_grid, many outputs": (fused_with("loop_grid"), {"sizes": (13, 36, 70), "rows": 70}),
    "tile": (fused_with("tile"), {"sizes": (5, 12, 40, 2), "rows": 150}),
    "gemm": (fused_with("gemm"), {"sizes": (3, 70, 130, 2), "rows": 300}),
}
CASES = [(way, *case) for way in WAYS for case in EVERY if (way, case[0]) != ("tile", "sine")]  # it refuses sines


@pytest.fixture(autouse=True)
def tiles_for_few_rows(monkeypatch):
    monkeypatch.setattr(fused_tile, "LEAST_ROWS", 100)


@pytest.fixture(autouse=True)
def one_thread_for_products_on_the_host():
    """Many tests at a time, each with as many threads as there are cores, would wait for one another."""
    with threadpool_limits(1):
        yield


@pytest.mark.parametrize(("way", "activation", "loss", "optimizer"), CASES)
def test_against_float64(card, host64, way, activation, loss, optimizer):
    prepare, shape = WAYS[way]
    steps = STEPS // 2 if "relu" in activation else STEPS  # a kink, once crossed, is another way
    case = {**shape, "activation": activation, "loss": loss, "optimizer": optimizer, "cuts": (steps,)}
    reference = run(host64, engine("eager").prepare, **case)
    found = run(card, prepare, **case)
    np.testing.assert_allclose(found[0], reference[0], rtol=1e-3)
    assert distance(found, reference) <= max(4 * numpys_own(case, reference), 2e-6)


@pytest.mark.parametrize(
    ("way", "batch_size"),
    [
        *[(way, size) for way in ("graph", "loop_rows", "loop_weights") for size in (None, 1, 7)],
        *[("loop_grid", size) for size in (None, 1, 40)],
        ("tile", None),
        ("tile", 130),
        ("graph in parts", 130),
        ("graph of operations", 7),
        ("gemm", None),
        ("gemm", 130),
    ],
)
def test_bits_do_not_depend_on_the_cuts(card, way, batch_size):
    prepare, shape = WAYS[way]
    case = {**shape, "activation": "tanh", "loss": "mse", "optimizer": Adam, "batch_size": batch_size}
    whole = run(card, prepare, **case)
    parts = run(card, prepare, **case, cuts=(1, 22, STEPS - 23))
    np.testing.assert_array_equal(parts[0], whole[0])
    for name, value in whole[2].items():
        np.testing.assert_array_equal(parts[2][name], value, err_msg=name)


@pytest.mark.parametrize(
    ("way", "batch_size"),
    [
        *[(way, size) for way in ("graph", "loop_rows", "loop_weights") for size in (1, 2, 7)],
        *[("loop_grid", size) for size in (1, 7, 40)],
        ("tile", 130),
        ("gemm", 130),
    ],
)
def test_batches_against_float64(card, host64, way, batch_size):
    prepare, shape = WAYS[way]
    case = {**shape, "activation": "tanh", "loss": "mse", "optimizer": Momentum, "batch_size": batch_size}
    reference = run(host64, engine("eager").prepare, **case)
    found = run(card, prepare, **case)
    np.testing.assert_allclose(found[0], reference[0], rtol=1e-3)
    assert distance(found, reference) < 1e-4


@pytest.mark.parametrize(
    ("way", "activation"), [("tile", "tanh"), ("loop_grid", "tanh"), ("gemm", "tanh"), ("gemm", "sine")]
)
def test_tf32_is_near_and_3xtf32_is_nearer(card, host64, way, activation):
    """TF32's one-step gradients within 2e-3, seen through one step of descent; 3xTF32 as good as NumPy's float32."""
    case = {**WAYS[way][1], "activation": activation, "loss": "mse", "optimizer": SGD, "cuts": (1,)}
    reference = run(host64, engine("eager").prepare, **case)
    off = {n: distance(run(card, fused_with(way, products=n), **case), reference) for n in (1, 3)}
    own = distance(run(nnlab.backend("numpy"), engine("eager").prepare, **case), reference)
    assert off[1] < 2e-3
    assert off[3] <= 4 * own < off[1]


@pytest.mark.parametrize("sizes", [(2, 256, 256, 1), (2, 512, 192, 3), (17, 64, 1024, 1)], ids=str)
@pytest.mark.parametrize("name", ["fused", "fused-tf32"])
def test_wide_networks_of_many_shapes(card, host64, name, sizes):
    """Matrices that stay in shared memory and those that do not, narrow and wide tiles, many inputs."""
    case = {"sizes": sizes, "rows": 1_000, "activation": "sine", "loss": "mse", "optimizer": SGD, "cuts": (1,)}
    reference = run(host64, engine("eager").prepare, **case)
    found = run(card, engine(name).prepare, **case)
    np.testing.assert_allclose(found[0], reference[0], rtol={"fused": 1e-5, "fused-tf32": 2e-3}[name])
    assert distance(found, reference) < {"fused": 1e-5, "fused-tf32": 2e-3}[name]


@pytest.mark.parametrize("rows", [100, 1000, 4000])
def test_wide_networks_on_the_whole_card(card, host64, rows):
    """Several groups of rows for a cluster, several tiles for a block, batches that leave a rest."""
    case = {"sizes": (70, 300, 500, 3), "rows": 4050, "batch_size": rows, "cuts": (1, 4)}
    case |= {"activation": "tanh", "loss": "mse", "optimizer": Adam}
    reference = run(host64, engine("eager").prepare, **case)
    host = run(nnlab.backend("numpy"), engine("eager").prepare, **case)
    found = run(card, fused_with("loop_grid"), **case)
    np.testing.assert_allclose(found[0], reference[0], rtol=1e-3)
    assert distance(found, reference) <= max(4 * distance(host, reference), 2e-6)
