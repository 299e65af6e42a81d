"""Networks, layers, optimisers and losses of the user's own: engines take them as they are or refuse them by name."""

from __future__ import annotations

import numpy as np
import pytest

import nnlab
from nnlab import nn
from nnlab.engines import compiled, engine
from nnlab.engines.tiled import Tiled
from nnlab.errors import DivergenceError, EngineCannot, ShapeError
from nnlab.nn import losses
from nnlab.optim import SGD, Adam, Momentum, TrainState, constant
from nnlab.training import fit

OPTIONS = {"loss": losses.mse, "rate": 0.1, "steps": 6, "log_every": 6}


class Twice(nn.Linear):
    def __call__(self, x):
        return super().__call__(x) * 2

    def backward(self, gradient, *, to_input=True):
        return super().backward(gradient * 2, to_input=to_input)


class Halved(nn.Sequential):
    def __call__(self, x):
        return super().__call__(x) * 0.5

    def backward(self, gradient, *, to_input=True):
        return super().backward(gradient * 0.5, to_input=to_input)


class Decay(SGD):
    def update(self, parameters, gradients, rate):
        for value in parameters.values():
            value[...] = value * np.float32(0.9)
        super().update(parameters, gradients, rate)


def network(b, *, linear=nn.Linear, sequential=nn.Sequential):
    rng = np.random.default_rng(0)
    layers = [linear(3, 8, backend=b, rng=rng), nn.Activation("tanh"), nn.Linear(8, 1, backend=b, rng=rng)]
    return sequential(layers)


def data(b, rows=40):
    rng = np.random.default_rng(1)
    return b.asarray(rng.uniform(-1, 1, (rows, 3))), b.asarray(rng.uniform(0, 1, (rows, 1)))


def end(b, name, make, optimizer=SGD):
    model = make(b)
    fit(model, *data(b), optimizer=optimizer(), engine=name, **OPTIONS)
    return b.to_host(model.parameters["0.weight"])


OWN = {
    "layer": (lambda b: network(b, linear=Twice), SGD),
    "network": (lambda b: network(b, sequential=Halved), SGD),
    "optimiser": (network, Decay),
}


REFUSED = {
    "tiled": ("layer", "network"),
    "graph": ("optimiser",),
    "fused": ("layer", "network", "optimiser"),
    "auto": (),
}


@pytest.mark.parametrize("what", OWN)
@pytest.mark.parametrize(
    ("home", "name"), [("numpy", "tiled"), ("sim", "graph"), ("sim", "fused"), ("sim", "auto"), ("numpy", "auto")]
)
def test_own_classes_are_trained_as_they_are_or_refused(home, name, what):
    make, optimizer = OWN[what]
    b = nnlab.backend(home)
    if what in REFUSED[name]:
        with pytest.raises(EngineCannot, match="use engine="):
            end(b, name, make, optimizer)
    else:
        found, expected = end(b, name, make, optimizer), end(b, "eager", make, optimizer)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_auto_falls_back_on_eager_aloud_where_a_step_cannot_be_captured(capsys):
    def reading(prediction, target):
        loss, gradient = losses.mse(prediction, target)
        float(loss)
        return loss, gradient

    b = nnlab.backend("sim")
    with pytest.raises(EngineCannot, match="use engine='eager'"):
        fit(network(b), *data(b), optimizer=SGD(), engine="graph", **OPTIONS | {"loss": reading})
    history = fit(network(b), *data(b), optimizer=SGD(), engine="auto", **OPTIONS | {"loss": reading})
    assert "eager after all" in capsys.readouterr().out
    assert history.state.engine == "eager"
    assert history.loss[-1] < history.loss[0]


def test_a_layer_is_used_once():
    b = nnlab.backend("numpy")
    shared = nn.Activation("tanh")
    with pytest.raises(ValueError, match="used once"):
        nn.Sequential([nn.Linear(2, 2, backend=b, rng=np.random.default_rng(0)), shared, shared])


@pytest.mark.parametrize("name", ["eager", "tiled"])
def test_an_optimiser_that_remembers_another_network_is_refused(name):
    b, adam = nnlab.backend("numpy"), Adam()
    fit(network(b), *data(b), optimizer=adam, engine=name, **OPTIONS)
    wider = nn.mlp([3, 9, 1], backend=b, rng=np.random.default_rng(0))
    with pytest.raises(ShapeError, match=r"another network: 0\.weight.*make a new Adam"):
        fit(wider, *data(b), optimizer=adam, engine=name, **OPTIONS)


@pytest.mark.parametrize("name", ["eager", "tiled"])
def test_probabilities_that_become_nan_are_a_divergence(name):
    b = nnlab.backend("numpy")
    model = nn.mlp([3, 8, 8, 1], activation="linear", output="sigmoid", backend=b, rng=np.random.default_rng(0))
    first = b.to_host(model.parameters["0.weight"]).copy()
    with pytest.raises(DivergenceError), np.errstate(all="ignore"):
        fit(model, *data(b), optimizer=Momentum(), engine=name, **OPTIONS | {"loss": "bce", "rate": 1e30})
    np.testing.assert_array_equal(b.to_host(model.parameters["0.weight"]), first)


@pytest.mark.parametrize("wrong", [{"tile": 0}, {"tile": 2.5}, {"threads": -1}, {"threads": 0}])
def test_tiles_and_threads_are_whole_numbers_from_one(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be a whole number from 1"):
        Tiled(**wrong)


def test_auto_does_not_compile_for_a_short_run(capsys):
    if not compiled.have_numba():
        pytest.skip("Numba is not installed")
    b = nnlab.backend("numpy")
    fit(
        nn.mlp([3, 64, 1], backend=b, rng=np.random.default_rng(0)),
        *data(b, 4_000),
        optimizer=SGD(),
        engine="auto",
        **OPTIONS,
    )
    assert "engine='auto': eager" in capsys.readouterr().out


def test_replays_are_looked_at_ten_times_a_second():
    b = nnlab.backend("sim")
    model = nn.siren([2, 256, 256, 256, 1], backend=b, rng=np.random.default_rng(0))
    state = TrainState(model, losses.mse, SGD(), constant(0.1), steps=10, log_every=1)
    x = b.asarray(np.zeros((60_000, 2)))
    session = engine("graph").prepare(state, x, x[:, :1])
    assert 10 < session.chunk < 100
