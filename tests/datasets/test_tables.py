"""The data sets and the scaler: sizes, splits, reference numbers, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from nnlab.datasets import StandardScaler, load_email, load_real_estate, load_xor
from nnlab.errors import NotFitted, ShapeError


def test_real_estate():
    data = load_real_estate()
    assert data.x_train.shape == (321, 6)
    assert data.x_test.shape == (93, 6)
    assert data.y_train.shape == (321, 1)
    assert data.x_train.dtype == data.y_test.dtype == np.float64
    assert data.feature_names[-2:] == ("latitude", "longitude")
    assert ((data.y_test - data.y_train.mean()) ** 2).mean() == pytest.approx(155.9714, abs=1e-4)


def test_least_squares_on_the_standardised_split():
    data = load_real_estate()
    scaler = StandardScaler().fit(data.x_train)
    a = np.hstack([scaler.transform(data.x_train), np.ones((321, 1))])
    w = np.linalg.lstsq(a, data.y_train, rcond=None)[0]
    error = np.hstack([scaler.transform(data.x_test), np.ones((93, 1))]) @ w - data.y_test
    assert (error**2).mean() == pytest.approx(59.677850, abs=1e-6)


def test_email():
    data = load_email()
    assert (data.x_train.shape, data.x_test.shape) == ((3530, 19), (391, 19))
    assert (data.y_train.sum(), data.y_test.sum()) == (338, 29)
    column = data.feature_names.index("viagra")
    assert not data.x_train[:, column].any()
    assert data.x_test[:, column].max() == 8


def test_xor():
    data = load_xor()
    np.testing.assert_array_equal(data.y_train, np.logical_xor(data.x_train[:, :1], data.x_train[:, 1:]))


def test_scaler_uses_the_rows_it_was_fitted_on():
    """D-14: fitting on all four would put 100 at 1.731810."""
    scaler = StandardScaler().fit([1, 2, 3])
    assert scaler.mean == 2
    assert scaler.scale == pytest.approx(0.816496581)
    assert scaler.transform([100])[0] == pytest.approx(120.024997)
    np.testing.assert_allclose(scaler.inverse_transform(scaler.transform([1, 7])), [1, 7])
    assert not hasattr(scaler, "fit_transform")


def test_constant_columns_keep_their_units():
    scaler = StandardScaler().fit(load_email().x_train)
    column = load_email().feature_names.index("viagra")
    assert scaler.scale[column] == 1.0
    assert scaler.transform(load_email().x_test)[:, column].max() == 8
    # a constant whose computed deviation is rounding, not zero
    assert StandardScaler().fit(np.full((10, 1), 0.1)).scale == [1.0]


def test_scaler_refusals():
    with pytest.raises(NotFitted, match="fit"):
        StandardScaler().transform([1.0])
    with pytest.raises(NotFitted, match="fit"):
        _ = StandardScaler().mean
    with pytest.raises(ValueError, match="NaN"):
        StandardScaler().fit([1.0, float("nan")])
    with pytest.raises(ShapeError, match=r"\(n, 2\).*\(3, 4\)"):
        StandardScaler().fit(np.ones((5, 2))).transform(np.ones((3, 4)))
    with pytest.raises(ShapeError, match="at least one row"):
        StandardScaler().fit(np.ones((0, 2)))


def test_a_deviation_too_small_for_a_float_counts_as_constant():
    scaler = StandardScaler().fit(np.array([1e-200, 2e-200]))
    assert scaler.scale == 1.0
    assert np.isfinite(scaler.transform([1e-200])).all()
