"""The learning-rate widget tells what gradient descent does."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("ipywidgets")

from nnlab.lessons.widgets import LearningRate
from nnlab.lessons.widgets.learning_rate import descend


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    x[:, 1] += x[:, 0]
    return x, x @ [[1.0], [-2.0], [0.5]] + 0.3 * rng.normal(size=(60, 1)) + 1


@pytest.fixture
def ui(data):
    return LearningRate(*data, steps=300)


def limit(x: np.ndarray) -> float:
    a = np.column_stack([np.ones(len(x)), x])
    return float(1 / np.linalg.eigvalsh(a.T @ a / len(a)).max())


def test_the_runs_are_gradient_descent(data):
    x, y = data
    losses, best = descend(x, y, np.array([0.05, 0.1]), 200)
    a, w = np.column_stack([np.ones(len(x)), x]), np.zeros((4, 1))
    for step in range(201):
        residual = a @ w - y
        assert losses[1, step] == pytest.approx((residual**2).mean(), rel=1e-9)
        w -= 0.1 * 2 * a.T @ residual / len(a)
    exact = np.linalg.lstsq(a, y, rcond=None)[0]
    assert best == pytest.approx(((a @ exact - y) ** 2).mean(), rel=1e-9)


def test_the_slider_drives_numbers_and_picture_at_both_ends(ui):
    seen = set()
    for rate in (ui.rate.base**ui.rate.min, ui.rate.base**ui.rate.max):
        ui.rate.value = rate
        assert f"{rate:.3g}" in ui.numbers.value
        seen.add(ui.picture.value)
    assert len(seen) == 2
    assert "diverges" in ui.numbers.value


def test_what_converges_and_what_diverges_is_the_theorys(ui, data):
    assert "diverges" not in ui.show(rate=0.93 * limit(data[0]))
    assert "diverges" in ui.show(rate=1.07 * limit(data[0]))


def test_a_rate_that_diverges_is_told_and_the_next_value_works(ui):
    """D-29."""
    assert "diverges" in ui.show(rate=1.0)
    assert "within 0.1 %" in ui.show(rate=0.2 * limit_of(ui))


def limit_of(ui: LearningRate) -> float:
    bad = [rate for rate, run in zip(ui.rates, ui.losses, strict=True) if not run[-1] < run[0]]
    return float(min(bad))
