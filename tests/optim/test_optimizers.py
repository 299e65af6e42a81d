"""Optimisers and schedules: known trajectories, types, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import nnlab
from nnlab import nn, optim
from nnlab.errors import MixedBackendError, ShapeError, UnknownName
from nnlab.nn import losses
from nnlab.training import SGD, Adam, Momentum, constant, cosine

COSINE = [0.1, 0.0975528258, 0.0904508497, 0.0793892626, 0.0654508497, 0.05]
COSINE += [0.0345491503, 0.0206107374, 0.0095491503, 0.0024471742, 0]


def minimise(optimizer, w, steps):
    """Steps down w^2 / 2, whose gradient is w."""
    for _ in range(steps):
        optimizer.update({"w": w}, {"w": w.copy()}, 0.1)
    return float(w[0])


@pytest.mark.parametrize(("make", "end"), [(Momentum, 0.3446674486), (Adam, -0.2711540941)])
def test_known_trajectories(make, end):
    """D-23, the uninterrupted run."""
    assert minimise(make(), np.array([1.0]), 20) == pytest.approx(end, abs=1e-10)


def test_sgd_is_steepest_descent(b):
    w = b.asarray(np.array([1.0, -2.0]))
    SGD().update({"w": w}, {"w": b.asarray(np.array([0.5, 0.5]))}, 0.1)
    np.testing.assert_allclose(b.to_host(w), [0.95, -2.05], rtol=1e-6)


@pytest.mark.parametrize("make", [SGD, Momentum, Adam])
def test_float32_stays_float32(b, rng, make):
    """D-06: not even a NumPy float64 rate may widen anything."""
    model = nn.mlp([2, 3, 1], backend=b, rng=rng)
    x, y = b.asarray(rng.normal(size=(4, 2))), b.asarray(rng.normal(size=(4, 1)))
    optimizer = make()
    model.backward(losses.mse(model(x), y)[1])
    optimizer.update(model.parameters, model.gradients, np.float64(0.01))
    for arrays in (model.parameters, model.gradients, optimizer.arrays):
        assert all(value.dtype == np.float32 for value in arrays.values())


def test_cosine():
    """D-22, the rates; Python floats, whatever comes in."""
    schedule = cosine(np.float64(0.1), np.int64(10))
    assert [schedule(k) for k in range(11)] == pytest.approx(COSINE, abs=1e-10)
    assert schedule(25) == 0.0
    assert cosine(0.1, 10, end=0.01)(10) == 0.01
    assert all(type(schedule(k)) is float for k in range(12))
    assert type(constant(np.float32(0.5))(3)) is float


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
def test_bad_rates_are_refused(rate):
    with pytest.raises(ValueError, match="positive, finite"):
        constant(rate)
    with pytest.raises(ValueError, match="positive, finite"):
        cosine(rate, 10)
    with pytest.raises(ValueError, match="not"):
        SGD().update({"w": np.ones(1)}, {"w": np.ones(1)}, -1 if rate == 0 else rate)


def test_bad_settings_are_refused():
    for make, settings in ((Momentum, {"momentum": 1.0}), (Adam, {"beta1": -0.1}), (Adam, {"epsilon": 0.0})):
        with pytest.raises(ValueError, match="not"):
            make(**settings)
    with pytest.raises(ValueError, match="steps"):
        cosine(0.1, 0)
    with pytest.raises(ValueError, match="end"):
        cosine(0.1, 10, end=0.2)


def test_parameters_and_gradients_must_match():
    with pytest.raises(ShapeError, match="different names"):
        SGD().update({"w": np.ones(1)}, {"v": np.ones(1)}, 0.1)
    w = np.ones(2)
    with pytest.raises(ShapeError, match=r"w has shape \(2,\), its gradient \(1,\)"):
        SGD().update({"w": w}, {"w": np.ones(1)}, 0.1)
    assert (w == 1).all()


@pytest.mark.parametrize("made", [SGD(), Momentum(0.5), Adam(0.8, 0.9, 1e-6)])
def test_optimizers_come_back_from_their_config(made):
    assert optim.optimizer_from_config(made.config).config == made.config


@pytest.mark.parametrize("made", [constant(0.1), cosine(0.1, 7, end=0.01)])
def test_schedules_come_back_from_their_config(made):
    assert optim.schedule_from_config(made.config) == made


def test_unknown_names():
    with pytest.raises(UnknownName, match="adam"):
        optim.optimizer_from_config({"optimizer": "adan"})
    with pytest.raises(UnknownName, match="cosine"):
        optim.schedule_from_config({"schedule": "cosin"})


def test_a_gradient_from_elsewhere_is_named(b):
    elsewhere = nnlab.backend("sim" if b.is_host else "numpy").asarray([1.0])
    with pytest.raises(MixedBackendError, match="the gradient of w lives on"):
        SGD().update({"w": b.asarray([1.0])}, {"w": elsewhere}, 0.1)


@pytest.mark.parametrize("rate", ["0.1", None, lambda k: 0.1])
def test_a_rate_is_a_number(rate):
    with pytest.raises(TypeError, match=r"rate must be a number, or a schedule such as cosine"):
        constant(rate)
