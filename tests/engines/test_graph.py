"""The graph engine on the simulated GPU: what goes into its graph, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import nnlab
from nnlab import nn
from nnlab.engines import engine
from nnlab.engines.graph_cuts import MOST_SHARED, THREADS, cuts
from nnlab.engines.graph_plan import step_plan
from nnlab.errors import MixedBackendError, ShapeError
from nnlab.nn import losses
from nnlab.optim import SGD, TrainState, constant


@pytest.fixture
def sim():
    return nnlab.backend("sim")


class Doubled(nn.Linear):
    """A layer that the kernels would take for a plain one, were they to look at its base."""

    def __call__(self, x):
        return 2.0 * super().__call__(x)

    def backward(self, gradient, *, to_input=True):
        return super().backward(2.0 * gradient, to_input=to_input)


def half_mse(prediction, target):
    loss, gradient = losses.mse(prediction, target)
    return 0.5 * loss, 0.5 * gradient


def run(backend, name, layers, loss=losses.mse, rows=50):
    rng = np.random.default_rng(0)
    x, y = backend.asarray(rng.uniform(-1, 1, (rows, 3))), backend.asarray(rng.uniform(0, 1, (rows, 2)))
    model = nn.Sequential(layers(backend, rng))
    state = TrainState(model, loss, SGD(), constant(0.1), steps=5, log_every=1)
    state.optimizer.prepare(model.parameters)
    session = engine(name).prepare(state, x, y)
    return session, backend.to_host(session.advance(5))


def plain(backend, rng):
    return [nn.Linear(3, 8, backend=backend, rng=rng), nn.Activation("tanh"), nn.Linear(8, 2, backend=backend, rng=rng)]


def derived(backend, rng):
    return [Doubled(3, 8, backend=backend, rng=rng), nn.Activation("tanh"), nn.Linear(8, 2, backend=backend, rng=rng)]


def twice(backend, rng):
    return [*plain(backend, rng), nn.Activation("tanh"), nn.Activation("sigmoid")]


def test_a_chain_is_two_kernels_a_layer(sim):
    session, _ = run(sim, "graph", plain)
    assert [name for name, _ in session.graph.nodes] == ["forward<0>", "forward<1>", "backward<1>", "gradients"]


def test_many_rows_are_split_and_added_up(sim):
    session, _ = run(sim, "graph", plain, rows=20_000)
    assert [name for name, _ in session.graph.nodes][-2:] == ["gradients", "update_all"]
    assert min(step_plan(session.state, session.x).splits) > 1


@pytest.mark.parametrize(
    ("layers", "loss", "dtype"),
    [
        (derived, losses.mse, "float32"),
        (twice, losses.mse, "float32"),
        (plain, half_mse, "float32"),
        (plain, losses.mse, "float64"),
    ],
    ids=["derived layer", "two activations", "own loss", "float64"],
)
def test_what_the_kernels_do_not_know_is_captured_as_operations(layers, loss, dtype):
    b = nnlab.backend("sim", dtype=dtype)
    session, seen = run(b, "graph", layers, loss)
    assert "matmul" in [name for name, _ in session.graph.nodes]
    _, expected = run(b, "eager", layers, loss)
    np.testing.assert_allclose(seen, expected, rtol=1e-5)


def test_data_that_does_not_fit_is_refused_before_starting(sim):
    rng = np.random.default_rng(0)
    model = nn.Sequential(plain(sim, rng))
    state = TrainState(model, losses.mse, SGD(), constant(0.1), steps=5, log_every=1)
    x, y = sim.asarray(np.ones((6, 3))), sim.asarray(np.ones((6, 2)))
    for wrong_x, wrong_y in ((x[:, :2], y), (x, y[:, :1]), (x, y[:5]), (x, y[:, 0])):
        with pytest.raises(ShapeError):
            engine("graph").prepare(state, wrong_x, wrong_y)
    with pytest.raises(MixedBackendError):
        engine("graph").prepare(state, x, np.ones((6, 2), np.float32))


def test_an_interrupted_preparation_changes_nothing(sim):
    class Impatient(SGD):
        def apply(self, parameters, gradients, factors):
            super().apply(parameters, gradients, factors)
            raise KeyboardInterrupt

    rng = np.random.default_rng(0)
    model = nn.Sequential(plain(sim, rng))
    before = {name: sim.to_host(value).copy() for name, value in model.parameters.items()}
    state = TrainState(model, losses.mse, Impatient(), constant(0.1), steps=5, log_every=1)
    state.optimizer.prepare(model.parameters)
    with pytest.raises(KeyboardInterrupt):
        engine("graph").prepare(state, sim.asarray(np.ones((6, 3))), sim.asarray(np.ones((6, 2))))
    for name, value in model.parameters.items():
        np.testing.assert_array_equal(sim.to_host(value), before[name], err_msg=name)


def test_every_cut_shares_its_work_out_among_all_threads():
    found = list(cuts())
    assert len(found) > 50
    for cut in found:
        threads = cut.down // cut.thread_down * (cut.across // cut.thread_across) * cut.slices
        assert threads == THREADS, cut
        assert cut.depth % cut.slices == 0, cut
        assert cut.depth % 4 == 0, cut
        assert cut.shared_bytes <= MOST_SHARED, cut
