"""Sine networks on image I: what makes them work and what breaks them. D-16 and D-21."""

from __future__ import annotations

import numpy as np
import pytest

from nnlab import nn
from nnlab.images import constant_image, pixel_centres, psnr, render
from nnlab.nn.initialisers import siren_weight
from nnlab.training import SGD, Adam, fit

SIZES = [2, 32, 32, 1]


@pytest.fixture
def host32(host64):
    return host64.astype("float32")


def reached(b, truth, model, *, optimizer=None, rate=1e-3):
    """PSNR in dB on the training pixels after 300 steps."""
    x, y = pixel_centres(*truth.shape, backend=b), b.asarray(truth.reshape(-1, 1))
    fit(model, x, y, loss="mse", optimizer=optimizer or Adam(), rate=rate, steps=300)
    return psnr(truth, render(model, *truth.shape), data_range=1.0)


def sine_network(b, seed):
    return nn.siren(SIZES, backend=b, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_reference_run(host32, image_i, seed):
    assert reached(host32, image_i(), sine_network(host32, seed)) >= 40


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_hidden_rule_in_the_first_layer_stays_blurry(host32, image_i, seed):
    model = sine_network(host32, seed)
    wrong = siren_weight(np.random.default_rng(seed), 2, 32, first=False, omega_0=30.0)
    model.parameters["0.weight"][...] = wrong
    assert reached(host32, image_i(), model) <= 30


def test_initial_ranges_and_the_spread_of_the_arguments(host64):
    """Bounds of a 2-256-256-256-1 network, and with zero biases the spread of what goes into each sine."""
    model = nn.siren([2, 256, 256, 256, 1], backend=host64, rng=np.random.default_rng(0))
    for name, bound in (("0.weight", 0.5), ("2.weight", 0.005103104), ("4.weight", 0.005103104)):
        size = np.abs(model.parameters[name]).max()
        assert 0.98 * bound < size <= bound + 1e-9
    for name, value in model.parameters.items():
        if name.endswith("bias"):
            value.fill(0)
    model(np.random.default_rng(1).uniform(-1, 1, (4000, 2)))
    spreads = [layer.argument.std() for layer in model.layers if isinstance(layer, nn.Sine)]
    assert spreads[0] == pytest.approx(7.1, abs=0.5)
    assert all(0.85 <= spread <= 1.1 for spread in spreads[1:])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rate_and_optimiser_decide(host32, image_i, seed):
    """Against at least 40 dB of the reference: too high a rate ends below the picture of one colour."""
    truth = image_i()
    floor = psnr(truth, constant_image(truth), data_range=1.0)
    assert reached(host32, truth, sine_network(host32, seed), rate=1e-1) < floor
    assert floor < reached(host32, truth, sine_network(host32, seed), rate=1e-4) < 30
    assert reached(host32, truth, sine_network(host32, seed), optimizer=SGD(), rate=1e-4) < floor
    relu = nn.mlp(SIZES, activation="relu", backend=host32, rng=np.random.default_rng(seed))
    assert floor < reached(host32, truth, relu) < 20
