"""Several elementwise operations as one launch."""

from __future__ import annotations

import numpy as np
import pytest

import nnlab
from nnlab.errors import EngineCannot, MixedBackendError
from nnlab.tensor import fuse


def test_values(b):
    xp = b.xp

    @fuse
    def step(w, gradient, rate):
        return w - rate * xp.tanh(gradient)

    w, gradient = b.asarray([1.0, 2.0]), b.asarray([0.5, -0.5])
    for _ in range(2):
        result = step(w, gradient, 0.1)
        assert b.owns(result)
        assert result.dtype == b.dtype
        np.testing.assert_allclose(b.to_host(result), [1.0 - 0.1 * np.tanh(0.5), 2.0 + 0.1 * np.tanh(0.5)], rtol=1e-6)
    assert step.__name__ == "step"


def test_two_results(b):
    @fuse
    def both(x, y):
        return x + y, x * y

    total, product = both(b.asarray([1.0, 2.0]), b.asarray([3.0]))
    np.testing.assert_array_equal(b.to_host(total), [4.0, 5.0])
    np.testing.assert_array_equal(b.to_host(product), [3.0, 6.0])


def test_one_launch_and_one_block_on_the_simulated_gpu():
    b = nnlab.backend("sim")
    x = b.asarray(np.ones(1000))

    def square_sum(x, y):
        return b.xp.sqrt(x * x + y * y)

    with b.measure() as plain:
        square_sum(x, x)
    with b.measure() as fused:
        fuse(square_sum)(x, x)
    assert (plain.launches, fused.launches) == (4, 1)
    assert fused.by_operation() == {"square_sum": 1}
    assert fused.allocations + fused.pool_hits == 1
    assert b.memory().used == 4096


def test_in_a_recording():
    b = nnlab.backend("sim")
    x = b.asarray([1.0, 2.0])

    @fuse
    def grow(x):
        x += 1.0
        return x * 10.0

    with b.capture() as graph:
        result = grow(x)
    np.testing.assert_array_equal(b.to_host(x), [1.0, 2.0])
    graph.replay()
    graph.replay()
    np.testing.assert_array_equal(b.to_host(x), [3.0, 4.0])
    np.testing.assert_array_equal(b.to_host(result), [30.0, 40.0])


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (lambda x: x @ x, "matmul"),
        (lambda x: x[x > 0], "mask"),
        (lambda x: x * float(x.sum()), "sum"),
        (lambda x: 5, "returns 5, no array"),
    ],
)
def test_what_is_not_elementwise_is_refused_by_name(function, named):
    b = nnlab.backend("sim")
    with pytest.raises(EngineCannot, match=named):
        fuse(function)(b.asarray(np.ones((2, 2))))


def test_mixed_homes():
    b = nnlab.backend("sim")
    with pytest.raises(MixedBackendError, match="argument 2 lives on the host"):
        fuse(lambda x, y: x + y)(b.asarray([1.0]), np.ones(1, "float32"))
    with pytest.raises(TypeError, match="at least one array"):
        fuse(lambda x: x)(1.0)
