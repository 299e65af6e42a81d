"""The contract of every engine: the numbers of eager, however the run is cut."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest

from nnlab import nn
from nnlab.engines import ENGINES, Tiled, base, compiled, engine
from nnlab.errors import EngineCannot
from nnlab.nn import losses
from nnlab.optim import SGD, Adam, Momentum, Schedule, TrainState, cosine
from nnlab.training import fit

NO_NUMBA = "tiled, no Numba"
HOST = {"graph": False, "fused": False, "tiled": True, NO_NUMBA: True}  # who runs only on the host, or only off it


# "fused-tf32" takes many rows only; see test_gpu_engines.py
@pytest.fixture(params=[*sorted(set(ENGINES) - {"fused-tf32"}), NO_NUMBA])
def name(request, b, monkeypatch):
    if request.param == NO_NUMBA and b.is_host:
        monkeypatch.setattr(compiled, "have_numba", lambda: False)
        return "tiled"
    if b.is_host != HOST.get(request.param, b.is_host):
        pytest.skip(f"{request.param} does not run on {b.home}")
    return request.param


def prepared(b, name, *, optimizer=SGD, batch_size=None, kind="mlp", loss=losses.mse):
    rng = np.random.default_rng(0)
    x, y = b.asarray(rng.uniform(-1, 1, (24, 2))), b.asarray(rng.uniform(0, 1, (24, 1)))
    network = nn.siren if kind == "siren" else nn.mlp
    state = TrainState(
        model=network([2, 8, 8, 1], backend=b, rng=rng),
        loss=loss,
        optimizer=optimizer(),
        schedule=cosine(0.01, 40),
        steps=40,
        log_every=10,
        batch_size=batch_size,
        batch_seed=7,
    )
    state.optimizer.prepare(state.model.parameters)
    return state, engine(name).prepare(state, x, y)


def finish(b, state, session, cuts):
    seen = np.concatenate([b.to_host(session.advance(n)) for n in cuts])
    return seen, {key: b.to_host(value) for key, value in state.arrays.items()}


@pytest.mark.parametrize("optimizer", [SGD, Momentum, Adam])
@pytest.mark.parametrize("batch_size", [None, 5])
def test_same_numbers_as_eager(b, name, optimizer, batch_size):
    theirs, arrays = finish(b, *prepared(b, name, optimizer=optimizer, batch_size=batch_size), [40])
    expected, reference = finish(b, *prepared(b, "eager", optimizer=optimizer, batch_size=batch_size), [40])
    np.testing.assert_allclose(theirs, expected, rtol=1e-5, atol=1e-6)
    for key, value in reference.items():
        np.testing.assert_allclose(arrays[key], value, rtol=1e-4, atol=1e-6, err_msg=key)


@pytest.mark.parametrize("kind", ["mlp", "siren"])
@pytest.mark.parametrize("loss", [losses.mse, losses.sse, losses.bce_with_logits])
def test_every_network_and_loss(b, name, kind, loss):
    theirs, _ = finish(b, *prepared(b, name, kind=kind, loss=loss, optimizer=Adam), [40])
    expected, _ = finish(b, *prepared(b, "eager", kind=kind, loss=loss, optimizer=Adam), [40])
    # a sine network ends near zero, where rounding is most of the loss
    np.testing.assert_allclose(theirs, expected, rtol=1e-4, atol=1e-4 * expected[0])


def test_bits_do_not_depend_on_the_cuts(b, name):
    whole, arrays = finish(b, *prepared(b, name, optimizer=Adam, batch_size=5), [40])
    parts, others = finish(b, *prepared(b, name, optimizer=Adam, batch_size=5), [1, 16, 23])
    np.testing.assert_array_equal(parts, whole)
    for key, value in arrays.items():
        np.testing.assert_array_equal(others[key], value, err_msg=key)


def test_losses_are_measured_before_the_update(b, name):
    state, session = prepared(b, name)
    before = float(b.to_host(session.evaluate()))
    assert float(b.to_host(session.advance(1))[0]) == pytest.approx(before, rel=1e-6)
    assert state.step == state.optimizer.step == 1
    assert float(b.to_host(session.evaluate())) < before


def test_stop_ends_early_with_the_losses_so_far(b, name):
    state, session = prepared(b, name)
    session.stop = lambda: state.step >= 3
    taken = b.to_host(session.advance(10_000))
    assert len(taken) == state.step < 10_000
    assert len(session.advance(5)) == 0


@pytest.mark.parametrize(("optimizer", "setting"), [(Momentum, "momentum"), (Adam, "beta1"), (Adam, "epsilon")])
def test_a_setting_changed_on_the_way_is_followed_or_refused(b, name, optimizer, setting):
    state, session = prepared(b, name, optimizer=optimizer)
    session.advance(5)
    setattr(state.optimizer, setting, 0.25)
    if not b.is_host and name != "eager":
        with pytest.raises(EngineCannot, match=rf"with {setting} = .* now has 0\.25: change it between"):
            session.advance(5)
        assert state.step == state.optimizer.step == 5
        session = engine(name).prepare(state, session.x, session.y)
    theirs = b.to_host(session.advance(35))
    reference, session = prepared(b, "eager", optimizer=optimizer)
    session.advance(5)
    setattr(reference.optimizer, setting, 0.25)
    np.testing.assert_allclose(theirs, b.to_host(session.advance(35)), rtol=1e-5, atol=1e-6)


def test_a_schedule_changed_on_the_way_is_followed(b, name):
    def run(name):
        state, session = prepared(b, name, optimizer=Adam)
        seen = finish(b, state, session, [5])[0]
        state.schedule = cosine(0.1, 40)
        return np.concatenate([seen, finish(b, state, session, [35])[0]])

    np.testing.assert_allclose(run(name), run("eager"), rtol=1e-4, atol=1e-6)


def test_a_loss_changed_on_the_way_is_followed_or_refused(b, name):
    def run(name):
        state, session = prepared(b, name)
        session.advance(5)
        state.loss = losses.sse
        return state, session

    state, session = run(name)
    if not b.is_host and name != "eager":
        with pytest.raises(EngineCannot, match="the loss = mse, and the state now has sse: change it between"):
            session.advance(5)
        assert state.step == state.optimizer.step == 5
    else:
        np.testing.assert_allclose(finish(b, state, session, [5])[0], finish(b, *run("eager"), [5])[0], rtol=1e-4)


def test_tiled_refuses_an_own_loss_on_the_way(host64):
    def my_loss(prediction, target):
        return losses.mse(prediction, target)

    state, session = prepared(host64, "tiled")
    state.loss = my_loss
    with pytest.raises(EngineCannot, match="does not know my_loss"):
        session.advance(5)


def replace_in_layer(state):
    parameters = state.model.layers[0].parameters
    parameters["weight"] = parameters["weight"].copy()
    return r"layers\[0\]\.parameters\['weight'\]"


def replace_in_model(state):
    state.model.parameters["0.bias"] = state.model.parameters["0.bias"].copy()
    return r"0\.bias"


def replace_in_optimizer(state):
    state.optimizer.arrays["velocity.0.weight"] = state.optimizer.arrays["velocity.0.weight"].copy()
    return r"optimizer\.velocity\.0\.weight"


@pytest.mark.parametrize(
    ("name", "replace"),
    [
        *product(["tiled", NO_NUMBA, "graph", "fused"], [replace_in_layer, replace_in_model]),
        *product(["graph", "fused"], [replace_in_optimizer]),  # the others ask the optimiser again at every step
    ],
    indirect=["name"],
)
def test_an_array_replaced_on_the_way_is_refused(b, name, replace):
    state, session = prepared(b, name, optimizer=Momentum)
    session.advance(5)
    culprit = replace(state)
    with pytest.raises(EngineCannot, match=rf"{culprit} has been replaced.*array\[\.\.\.\] = numbers"):
        session.advance(5)
    assert state.step == state.optimizer.step == 5


class From(Schedule):
    """Rates of 0.01, and another from step 3 on."""

    config = property(dict)

    def __init__(self, then):
        self.then = then

    def __call__(self, k):
        return 0.01 if k < 3 else self.then


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_a_bad_rate_is_refused_with_its_step(b, name, bad):
    state, session = prepared(b, name)
    state.schedule = From(bad)
    with pytest.raises(ValueError, match=rf"rate of step 3 must be a finite number from 0, not {bad}"):
        session.advance(10)
    assert state.step == state.optimizer.step <= 3


@pytest.mark.parametrize("name", ["eager", "tiled", NO_NUMBA], indirect=True)
def test_rows_are_drawn_a_few_steps_ahead(b, name, monkeypatch):
    whole, arrays = finish(b, *prepared(b, name, batch_size=5), [40])
    drawn, draw = [], TrainState.batches
    monkeypatch.setattr(TrainState, "batches", lambda *given: drawn.append(draw(*given)) or drawn[-1])
    monkeypatch.setattr(base, "TABLE", 12)
    parts, others = finish(b, *prepared(b, name, batch_size=5), [40])
    assert max(table.size for table in drawn) <= 12
    assert sum(len(table) for table in drawn) == 40
    np.testing.assert_array_equal(parts, whole)
    for key, value in arrays.items():
        np.testing.assert_array_equal(others[key], value, err_msg=key)


def test_graph_needs_a_device(host64):
    with pytest.raises(EngineCannot, match="the host has none"):
        prepared(host64, "graph")


@pytest.mark.parametrize("activation", ["linear", "tanh", "sigmoid", "relu", "leaky_relu"])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_tiles_and_threads_add_up(host64, activation, threads):
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1, 1, (50, 2)), rng.uniform(0, 1, (50, 1))
    ends = []
    for runner in (engine("eager"), Tiled(tile=7, threads=threads), Tiled(tile=7, threads=threads)):
        model = nn.mlp([2, 6, 5, 1], activation=activation, backend=host64, rng=np.random.default_rng(1))
        history = fit(model, x, y, loss=losses.bce_with_logits, optimizer=Adam(), rate=0.01, steps=30, engine=runner)
        ends.append((history.loss, model.parameters))
    assert ends[1][0] == ends[2][0]
    np.testing.assert_allclose(ends[1][0], ends[0][0], rtol=1e-9)
    for key, value in ends[0][1].items():
        np.testing.assert_allclose(ends[1][1][key], value, rtol=1e-6, atol=1e-9)
        np.testing.assert_array_equal(ends[1][1][key], ends[2][1][key])


@pytest.mark.parametrize("setting", ["tile", "threads"])
def test_tiled_takes_whole_numbers_alone(setting):
    settings = Tiled(**{setting: np.int64(3)}).settings
    assert json.loads(json.dumps(settings)) == {setting: 3}
    for wrong in (True, np.True_, 0, 2.5, "3"):
        with pytest.raises(ValueError, match=f"{setting} must be a whole number from 1, or None, not"):
            Tiled(**{setting: wrong})


def test_tiled_refuses_by_name(host64, b):
    def my_loss(prediction, target):
        return losses.mse(prediction, target)

    with pytest.raises(EngineCannot, match="my_loss"):
        prepared(host64, "tiled", loss=my_loss)
    rng = np.random.default_rng(0)
    odd = nn.Sequential([nn.Activation("tanh"), nn.Linear(2, 1, backend=host64, rng=rng)])
    state = TrainState(odd, losses.mse, SGD(), cosine(0.1, 4), steps=4, log_every=1)
    with pytest.raises(EngineCannot, match=r"layer 0, Activation, does not fit: use engine=.eager"):
        engine("tiled").prepare(state, rng.normal(size=(5, 2)), rng.normal(size=(5, 1)))
    if not b.is_host:
        with pytest.raises(EngineCannot, match="runs on the host"):
            prepared(b, "tiled")
