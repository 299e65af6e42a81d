"""The networks inside the widgets learn as nnlab's own do."""

from __future__ import annotations

from itertools import product

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


@pytest.mark.parametrize("seed", range(prices.SEEDS))
def test_price_runs_are_nnlabs(host64, rng, seed):
    x, y = rng.normal(size=(20, 4)), rng.normal(size=(20, 1))
    losses, errors = prices.train_all((4, 3, 3, 1), np.array([0.01, 0.2]), x, y, x[:5], y[:5], 20)
    model = nnlab.nn.mlp([4, 3, 3, 1], backend=host64, rng=np.random.default_rng(seed))
    np.testing.assert_allclose(losses[1, seed], trained(model, x, y, "mse", 0.2, 20), rtol=1e-9)
    np.testing.assert_allclose(errors[1, seed], nnlab.nn.losses.mse(model(x[:5]), y[:5])[0], rtol=1e-9)


def test_stuck_and_solved_starts_are_told_apart():
    ui = xor.Xor(steps=1000)
    assert "of 4 right" in ui.show(width=2, start=4)
    assert "all 4 right" in ui.show(width=4, start=4)


@pytest.fixture(scope="module")
def bent():
    """The widget on data that a straight line does not fit."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 3))
    y = 40 + 12 * np.tanh(2 * x[:, :1]) + 3 * x[:, 1:2] ** 2 + rng.normal(size=(120, 1))
    return prices.Prices(x[:80], y[:80], x[80:], y[80:], steps=120)


def test_a_price_network_without_hidden_layers_becomes_the_line(bent):
    said = bent.show(depth=0, width=2, rate=0.1)
    assert said.startswith("4 parameters")
    assert said.count(f"{bent.line_test:.1f}") == 4  # three starts and the line
    assert "none beats it" in said


def test_price_networks_that_bend_beat_the_line_and_a_high_rate_diverges(bent):
    assert "all three beat it" in bent.show(depth=1, width=8, rate=0.1)
    assert "diverged" in bent.show(depth=0, width=2, rate=1.0)


def test_no_choice_of_the_price_widget_warns(bent):
    with np.errstate(all="raise", under="ignore"):
        for depth, width, rate in product(prices.DEPTHS, prices.WIDTHS, bent.rates):
            bent.update(depth=depth, width=width, rate=float(rate))


def test_price_parameters_are_counted(host64, rng):
    model = nnlab.nn.mlp([6, 8, 8, 1], backend=host64, rng=rng)
    assert prices.count((6, 8, 8, 1)) == sum(value.size for value in model.parameters.values()) == 137
