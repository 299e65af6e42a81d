"""A singular matrix raises the same error on every backend (case D-34)."""

from __future__ import annotations

import numpy as np
import pytest

import nnlab
from nnlab.errors import MixedBackendError, ShapeError, SingularMatrixError
from nnlab.tensor import inv, solve

SINGULAR = [
    [[0.0]],
    [[1.0, 2.0], [2.0, 4.0]],
    [[1 / (row + column + 1) for column in range(14)] for row in range(14)],  # Hilbert's: elimination finds no zero
]


@pytest.mark.parametrize("matrix", SINGULAR)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_singular_matrices(b, matrix, dtype):
    b = b.astype(dtype)
    a = b.asarray(matrix)
    with pytest.raises(SingularMatrixError, match="singular to working precision"):
        inv(a)
    with pytest.raises(SingularMatrixError, match="singular to working precision"):
        solve(a, b.asarray(np.ones(len(matrix))))
    with pytest.raises(np.linalg.LinAlgError):
        inv(a)


def test_values(b, rng):
    a = b.asarray([[2.0, 1.0], [1.0, 3.0]])
    np.testing.assert_allclose(b.to_host(solve(a, b.asarray([3.0, 5.0]))), [0.8, 1.4], rtol=1e-6)
    np.testing.assert_allclose(b.to_host(inv(a)), [[0.6, -0.2], [-0.2, 0.4]], rtol=1e-6)
    b = b.astype("float64")
    host, right = rng.normal(size=(20, 20)), rng.normal(size=(20, 3))
    np.testing.assert_allclose(b.to_host(solve(b.asarray(host), b.asarray(right))), np.linalg.solve(host, right))
    np.testing.assert_allclose(b.to_host(inv(b.asarray(host))), np.linalg.inv(host), rtol=1e-9, atol=1e-12)


def test_integers_are_taken_as_float64(b):
    a = b.asarray(np.array([[2, 1], [1, 3]]))
    assert inv(a).dtype == "float64"
    np.testing.assert_allclose(b.to_host(solve(a, b.asarray(np.array([3, 5])))), [0.8, 1.4], rtol=1e-12)
    with pytest.raises(SingularMatrixError):
        inv(b.asarray(np.array([[0]])))


def test_what_is_no_system(b):
    a = b.asarray(np.eye(2))
    with pytest.raises(ShapeError, match=r"square matrix, not shape \(2, 3\)"):
        inv(b.asarray(np.ones((2, 3))))
    with pytest.raises(ShapeError, match="b with 2 rows"):
        solve(a, b.asarray(np.ones(3)))
    with pytest.raises(ValueError, match="not finite"):
        inv(b.asarray([[1.0, np.nan], [0.0, 1.0]]))
    if not b.is_host:
        with pytest.raises(MixedBackendError, match="b lives on the host"):
            solve(a, np.ones(2, "float32"))


def test_the_condition_is_one_copy():
    sim = nnlab.backend("sim")
    a = sim.asarray(np.eye(3))
    with sim.measure() as receipt:
        inv(a)
    assert (receipt.d2h_copies, receipt.waits) == (1, 1)
