"""Sigmoid, softmax and the losses: right values, finite at the extremes, strict about shapes."""

from __future__ import annotations

import numpy as np
import pytest

import nnlab
from nnlab.errors import MixedBackendError, ShapeError
from nnlab.nn import losses, metrics, sigmoid, softmax

Z = [-1000, -100, -2, 0, 2, 100, 1000]
SIGMOID = [0, 3.720075976e-44, 0.119202922, 0.5, 0.880797078, 1, 1]


def column(b, values, dtype=None):
    return b.asarray(np.array(values, float).reshape(-1, 1), dtype=dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sigmoid_is_stable(b, dtype):
    """D-11."""
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        a = b.to_host(sigmoid(b.asarray(np.array(Z, float), dtype=dtype)))
    assert a.dtype == dtype
    np.testing.assert_allclose(a, SIGMOID, rtol=1e-6, atol=1e-45 if dtype == "float64" else 1e-42)


def test_softmax_is_stable(b):
    """D-11."""
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        a = b.to_host(softmax(b.asarray(np.array([1000.0, 1001.0, 1002.0]))))
    np.testing.assert_allclose(a, [0.090030573, 0.244728471, 0.665240956], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bce_from_logits(b, dtype):
    """D-15: finite however confident, with the gradient that saturates at one half of a row's share."""
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        loss, gradient = losses.bce_with_logits(column(b, [-1000, 1000], dtype), column(b, [1, 0], dtype))
        assert float(b.to_host(loss)) == 1000
        np.testing.assert_array_equal(b.to_host(gradient).ravel(), [-0.5, 0.5])
        loss, gradient = losses.bce_with_logits(column(b, [0, 3, -2], dtype), column(b, [1, 1, 0], dtype))
    assert float(b.to_host(loss)) == pytest.approx(0.289554181, rel=1e-6)
    assert b.to_host(gradient).dtype == dtype


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bce_from_probabilities(b, dtype):
    """D-15."""
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        loss, gradient = losses.bce(column(b, [0], dtype), column(b, [1], dtype), clip=1e-7)
        assert float(b.to_host(loss)) == pytest.approx(16.118095651, rel=1e-6)
        assert np.isfinite(b.to_host(gradient)).all()
        loss, gradient = losses.bce(column(b, [1], dtype), column(b, [0], dtype))
        assert np.isfinite(float(b.to_host(loss)))
        assert np.isfinite(b.to_host(gradient)).all()


def test_a_clip_that_vanishes_in_float32_is_refused(host64):
    with pytest.raises(ValueError, match="1e-7"):
        losses.bce(column(host64, [0]), column(host64, [1]), clip=1e-9)


@pytest.mark.parametrize("loss", [losses.bce, losses.bce_with_logits])
def test_targets_outside_the_unit_interval_are_refused(host64, loss):
    with pytest.raises(ValueError, match=r"target .* \[0, 1\]; found -1 .. 1"):
        loss(column(host64, [0.2, 0.7]), column(host64, [-1, 1]))


def test_values_and_gradients(b):
    p, t = column(b, [1, 2, 4]), column(b, [1, 1, 1])
    loss, gradient = losses.mse(p, t)
    assert float(b.to_host(loss)) == pytest.approx(10 / 3)
    np.testing.assert_allclose(b.to_host(gradient).ravel(), [0, 2 / 3, 2], rtol=1e-6)
    loss, gradient = losses.sse(p, t)
    assert float(b.to_host(loss)) == pytest.approx(10)
    np.testing.assert_allclose(b.to_host(gradient).ravel(), [0, 2, 6], rtol=1e-6)


@pytest.mark.parametrize("measure", [*losses.LOSSES.values(), metrics.accuracy, metrics.recall, metrics.log_loss])
def test_shapes_must_be_equal(b, measure):
    """D-12: (4, 1) against (4,) names both; the silent answer would be 2.5."""
    p, t = column(b, [1, 2, 3, 4]), b.asarray(np.array([1.0, 2, 3, 4]))
    with pytest.raises(ShapeError, match=r"\(4, 1\).*\(4,\)"):
        measure(p, t)


def test_equal_prediction_and_target_have_no_loss(b):
    p = column(b, [1, 2, 3, 4])
    assert float(b.to_host(losses.mse(p, p)[0])) == 0.0


def test_the_loss_stays_at_home(b):
    loss, gradient = losses.mse(column(b, [1, 2]), column(b, [0, 0]))
    assert b.owns(gradient)
    assert loss.shape == ()


def test_numpy_targets_for_a_device_prediction_are_refused(b):
    if b.is_host:
        pytest.skip("both live on the host here")
    with pytest.raises(MixedBackendError, match="target lives on the host"):
        losses.mse(column(b, [1.0]), np.zeros((1, 1), np.float32))


def test_classification_metrics(host64):
    p, t = column(host64, [0.9, 0.6, 0.4, 0.2]), column(host64, [1, 0, 1, 0])
    assert metrics.accuracy(p, t) == 0.5
    assert metrics.recall(p, t) == 0.5
    assert metrics.precision(p, t) == 0.5
    assert metrics.recall(p, t, threshold=0.3) == 1.0
    assert metrics.log_loss(p, t) == pytest.approx(-np.mean(np.log([0.9, 0.4, 0.4, 0.8])))
    assert np.isnan(metrics.precision(p, t, threshold=0.95))
    assert np.isnan(metrics.recall(p, column(host64, [0, 0, 0, 0])))


def test_losses_by_wrong_name_suggest_the_nearest():
    with pytest.raises(nnlab.errors.UnknownName, match="Did you mean 'mse'"):
        losses.loss_by_name("mes")


@pytest.mark.parametrize("loss", losses.LOSSES.values())
def test_a_loss_wants_one_floating_type_and_rows(b, loss):
    """D-06: float64 targets would silently widen float32 work; whole numbers have no gradient."""
    p = column(b, [0.25, 0.75])
    for target in (column(b, [0, 1], "float64"), column(b, [0, 1], "int64")):
        with pytest.raises(TypeError, match=rf"prediction is float32, target is {target.dtype}.*asarray"):
            loss(p, target)
    with pytest.raises(TypeError, match="one floating type"):
        loss(column(b, [0, 1], "int64"), column(b, [0, 1], "int64"))
    with pytest.raises(ShapeError, match=r"empty, \(0, 1\)"):
        loss(p[:0], p[:0])


@pytest.mark.parametrize("measure", [metrics.accuracy, metrics.recall, metrics.precision])
def test_metrics_of_classes_refuse_logits_and_other_targets(b, measure):
    with pytest.raises(ValueError, match=r"probability .* \[0, 1\]; found -3 .. 4 .*sigmoid"):
        measure(column(b, [-3, 4]), column(b, [0, 1]))
    with pytest.raises(ValueError, match=r"target must be 0 or 1; found -1 .. 1"):
        measure(column(b, [0.2, 0.7]), column(b, [-1, 1]))


def test_a_probability_at_the_threshold_counts_as_called(host64):
    p, t = column(host64, [0.5, 0.5]), column(host64, [1, 0])
    assert (metrics.accuracy(p, t), metrics.recall(p, t), metrics.precision(p, t)) == (0.5, 1.0, 0.5)
    assert metrics.accuracy(p[:1], t[:1]) == 1.0
