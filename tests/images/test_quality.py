"""PSNR, SSIM and the constant image: D-20, and scikit-image as the judge."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from nnlab.errors import ShapeError
from nnlab.images import constant_image, psnr, ssim


@pytest.fixture
def truth(image_i):
    return image_i(16, 24)


def test_psnr_of_the_reported_cases(truth):
    """D-20."""
    zero = np.zeros((2, 2))
    assert psnr(zero, zero + 0.1, data_range=1.0) == pytest.approx(20.0)
    assert psnr(zero - 1, zero - 0.8, data_range=(-1, 1)) == pytest.approx(20.0)
    ten, fifty = np.full((2, 2), 10, np.uint8), np.full((2, 2), 50, np.uint8)
    assert psnr(ten, fifty, data_range=255) == pytest.approx(16.089604, abs=1e-6)
    assert psnr(fifty, ten, data_range=255) == pytest.approx(16.089604, abs=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert psnr(truth, truth, data_range=1.0) == math.inf
    ramp = np.array([0, 0.25, 0.5, 0.75])
    assert psnr(ramp, ramp + 0.1, data_range=1.0) == pytest.approx(20.0)


def test_psnr_asks_for_the_range_and_keeps_to_it(truth):
    with pytest.raises(TypeError, match="data_range"):
        psnr(truth, truth)
    with pytest.raises(ValueError, match=r"truth runs from -1 to 1, outside data_range 0 to 2"):
        psnr(np.array([-1.0, 1.0]), np.zeros(2), data_range=2.0)
    for wrong in (0, -1.0, (1, 1), (1, 0), math.nan):
        with pytest.raises(ValueError, match="data_range"):
            psnr(truth, truth, data_range=wrong)
    with pytest.raises(ValueError, match="NaN"):
        psnr(truth, truth * math.nan, data_range=1.0)
    with pytest.raises(ShapeError, match=r"\(16, 24\).*\(384,\)"):
        psnr(truth, truth.ravel(), data_range=1.0)
    assert psnr(np.ones(3), np.array([1.0, 1.5, 0.9]), data_range=1.0) == pytest.approx(-10 * math.log10(0.01 / 3))


def test_the_constant_image_is_the_floor(truth):
    assert psnr(truth, constant_image(truth), data_range=1.0) == pytest.approx(15.97, abs=0.005)
    for shift in (-0.01, 0.01):
        assert psnr(truth, constant_image(truth) + shift, data_range=1.0) < 15.97
    colour = np.stack([truth, truth * 0 + 0.25, 1 - truth], axis=-1)
    np.testing.assert_allclose(constant_image(colour)[3, 4], [truth.mean(), 0.25, 1 - truth.mean()])


def test_ssim_equals_scikit_image(truth):
    """The numbers are structural_similarity of scikit-image 0.26, gaussian_weights=True,
    sigma=1.5, use_sample_covariance=False, data_range 1 or 2, channel_axis=-1 for colour."""
    assert ssim(truth, truth**1.5, data_range=1.0) == pytest.approx(0.9507203070224467, abs=1e-12)
    x = np.stack([truth, truth**1.5, 1 - truth], axis=-1)
    y = np.stack([truth**1.5, truth, (1 - truth) ** 2], axis=-1)
    assert ssim(x, y, data_range=1.0) == pytest.approx(0.8988052795534496, abs=1e-12)
    assert ssim(2 * truth - 1, 2 * truth**1.5 - 1, data_range=(-1, 1)) == pytest.approx(-0.07965607101693026, abs=1e-12)
    assert ssim(truth, truth, data_range=1.0) == pytest.approx(1.0, abs=1e-12)


def test_ssim_refuses_what_it_cannot_compare(truth):
    with pytest.raises(ShapeError, match="at least 11 x 11"):
        ssim(truth[:10], truth[:10], data_range=1.0)
    with pytest.raises(ShapeError):
        ssim(truth, truth.T, data_range=1.0)
