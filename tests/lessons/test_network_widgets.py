"""The networks inside the widgets learn as nnlab's own do."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("ipywidgets")

import nnlab
from nnlab.lessons.widgets import prices, xor


def trained(model, x, y, loss, rate, steps):
    return nnlab.training.fit(
        model, x, y, loss=loss, optimizer=nnlab.training.SGD(), rate=rate, steps=steps, log_every=1
    ).loss


@pytest.mark.parametrize("activation", xor.ACTIVATIONS)
def test_xor_runs_are_nnlabs(activation, host64, rng):
    rates, width, start = np.array([0.1, 0.7]), 3, 2
    runs = xor.train(activation, rates, 40)
    first, second = xor.initial(activation, 2)
    place = (xor.WIDTHS.index(width), start, 1)
    model = nnlab.nn.mlp([2, width, 1], activation=activation, backend=host64, rng=rng)
    model.parameters["0.weight"][...] = first[(slice(2), slice(width), *place)]
    model.parameters["2.weight"][...] = second[(slice(width), *place)][:, None]
    losses = trained(model, xor.X, xor.Y[:, None], "bce_with_logits", 0.7, 40)
    np.testing.assert_allclose(runs.losses[(slice(None), *place)], losses[:: xor.LOG_EVERY], rtol=1e-9)
    probability = nnlab.nn.sigmoid(model(xor.X))[:, 0]
    np.testing.assert_allclose(runs.probability(xor.X, place), probability, rtol=1e-9)


def test_price_runs_are_nnlabs(host64, rng):
    x, y = rng.normal(size=(20, 4)), rng.normal(size=(20, 1))
    rates, steps = np.array([0.01, 0.2]), 20
    losses = prices.train((x, y, x[:5], y[:5]), 2, 3, rates, steps)
    own = np.random.default_rng(0)
    model = nnlab.nn.mlp([4, 3, 3, 1], activation="tanh", backend=host64, rng=own)
    expected = trained(model, x, y, "mse", 0.2, steps)
    np.testing.assert_allclose(losses[0, 1], expected[:: prices.LOG_EVERY], rtol=1e-9)
    np.testing.assert_allclose(losses[1, 1, -1], nnlab.nn.losses.mse(model(x[:5]), y[:5])[0], rtol=1e-9)


def test_stuck_and_solved_starts_are_told_apart():
    ui = xor.Xor(steps=1000)
    assert "of 4 right" in ui.show(width=2, start=4)
    assert "all 4 right" in ui.show(width=4, start=4)


def test_a_price_run_that_diverges_is_told(rng):
    x, y = rng.normal(size=(20, 4)) * 3, rng.normal(size=(20, 1))
    ui = prices.Prices(x, y, x, y, unit=1.0, least_squares=1.0, steps=100)
    assert "diverges" in ui.show(width=12, rate=1.0)
    assert "diverges" not in ui.show(width=12, rate=0.01)
