"""Kernels as one function: the same source interpreted here and compiled on a card."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import nnlab
from nnlab.backends.kernels import cuda
from nnlab.errors import EngineCannot, KernelFault, MixedBackendError

TILE = 16


def fill(out, value):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = value


def axpy(a, x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = cuda.tanh(a * x[i] + y[i])


def logistic_gradient(x, w, target, gradient):
    row = cuda.grid(1)
    if row < x.shape[0]:
        z = x[row, 0] * w[0]
        for k in range(1, x.shape[1]):
            z += x[row, k] * w[k]
        p = 1.0 / (1.0 + cuda.exp(-z))
        for k in range(x.shape[1]):
            cuda.atomic_add(gradient, k, (p - target[row]) * x[row, k])


def block_sums(x, out):
    part = cuda.shared_memory(cuda.float32, TILE)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = cuda.float32(0)
    if i < x.size:
        part[t] = x[i]
    half = cuda.blockDim.x // 2
    while half > 0:
        cuda.syncthreads()
        if t < half:
            part[t] += part[t + half]
        half //= 2
    if t == 0:
        out[cuda.blockIdx.x] = part[0]


def transpose(x, out):
    column, row = cuda.grid(2)
    if row < x.shape[0] and column < x.shape[1]:
        out[column, row] = x[row, column]


def test_fill(b):
    kernel = b.kernel(fill)
    out = b.asarray(np.zeros(10))
    kernel[2, 8](out, 7.0)
    np.testing.assert_array_equal(b.to_host(out), 7.0)


def test_one_kernel_for_three_operations(b, rng):
    x, y = rng.normal(size=(2, 100)).astype("float32")
    out = b.asarray(np.zeros(100))
    launcher = b.kernel(axpy)[(4, 1, 1), 32]
    launcher(2.0, b.asarray(x), b.asarray(y), out)
    np.testing.assert_allclose(b.to_host(out), np.tanh(2 * x + y), rtol=1e-5, atol=1e-6)
    launcher.check(2.0, b.asarray(x), b.asarray(y), out)


def test_the_gradient_of_a_logistic_regression(b, rng):
    x, w = rng.normal(size=(50, 4)).astype("float32"), rng.normal(size=4).astype("float32")
    target = (rng.random(50) < 0.5).astype("float32")
    gradient = b.asarray(np.zeros(4))
    kernel = b.kernel(logistic_gradient)
    kernel[4, 16](b.asarray(x), b.asarray(w), b.asarray(target), gradient)
    truth = (1 / (1 + np.exp(-x @ w)) - target) @ x
    np.testing.assert_allclose(b.to_host(gradient), truth, rtol=1e-4, atol=1e-5)


def test_shared_memory_and_barriers(b):
    x = np.arange(40, dtype="float32")
    out = b.asarray(np.zeros(3))
    b.kernel(block_sums)[3, TILE](b.asarray(x), out)
    np.testing.assert_array_equal(b.to_host(out), [x[:16].sum(), x[16:32].sum(), x[32:].sum()])


def test_two_directions(b):
    x = np.arange(15.0).reshape(3, 5)
    out = b.asarray(np.zeros((5, 3)))
    b.kernel(transpose)[(2, 1), (4, 4)](b.asarray(x), out)
    np.testing.assert_array_equal(b.to_host(out), x.T)


def test_counts_of_reads_and_writes(off_card):
    b = off_card
    kernel = b.kernel(axpy)
    kernel[2, 8](1.0, b.asarray(np.ones(10)), b.asarray(np.ones(10)), b.asarray(np.ones(10)))
    report = kernel.report
    assert (report.blocks, report.threads_per_block, report.threads) == (2, 8, 16)
    assert (report.reads, report.writes, report.atomics) == (20, 10, 0)
    assert (report.most_reads, report.most_writes) == (2, 1)
    kernel = b.kernel(block_sums)
    kernel[1, TILE](b.asarray(np.ones(16)), b.asarray(np.zeros(1)))
    assert (kernel.report.reads, kernel.report.writes, kernel.report.barriers) == (16, 1, 4)
    assert (kernel.report.shared_reads, kernel.report.shared_writes) == (2 * 15 + 1, 2 * 16 + 15)
    assert "barriers      4" in repr(kernel.report)


def test_one_launch_is_booked_and_recorded():
    b = nnlab.backend("sim")
    kernel, out = b.kernel(fill), b.asarray(np.zeros(10))
    with b.measure() as receipt:
        kernel[2, 8](out, 7.0)
    assert receipt.launches == 1
    assert receipt.by_operation() == {"fill": 1}
    assert (receipt.allocations, receipt.h2d_copies, receipt.d2h_copies, receipt.waits) == (0, 0, 0, 0)
    with b.capture() as graph:
        kernel[2, 8](out, 9.0)
    np.testing.assert_array_equal(b.to_host(out), 7.0)
    graph.replay()
    np.testing.assert_array_equal(b.to_host(out), 9.0)


def test_wrong_launches(b):
    kernel, out = b.kernel(fill), b.asarray(np.zeros(4))
    with pytest.raises(TypeError, match=r"fill\[blocks, threads_per_block\]"):
        kernel(out, 1.0)
    with pytest.raises(TypeError, match="fill takes out, value; 1 arguments were given"):
        kernel[1, 4](out)
    with pytest.raises(TypeError, match="value is a str"):
        kernel[1, 4](out, "7")
    with pytest.raises(ValueError, match="at most 1024 threads, not 2048"):
        kernel[1, 2048](out, 1.0)
    with pytest.raises(ValueError, match="1 or more"):
        kernel[0, 4](out, 1.0)
    with pytest.raises(TypeError, match="launch with"):
        kernel[4]
    if not b.is_host:
        with pytest.raises(MixedBackendError, match="out lives on the host"):
            kernel[1, 4](np.zeros(4, "float32"), 1.0)


DOUBLE = r"""
extern "C" __global__ void twice(const float* x, float* out, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = factor * x[i];
}
"""


def double(x, out, factor, n):
    out[:n] = factor * x[:n]


def test_cuda_c_and_its_reference(b):
    kernel = b.raw_kernel(DOUBLE, "twice", reference=double)
    x, out = b.asarray([1.0, 2.0, 3.0]), b.asarray([0.0, 0.0, 0.0])
    kernel[1, 32](x, out, 2.0, 2)
    np.testing.assert_array_equal(b.to_host(out), [2.0, 4.0, 0.0])
    kernel[1, 32].check(x, out, 2.0, 3)
    np.testing.assert_array_equal(b.to_host(out), [2.0, 4.0, 0.0])
    with pytest.raises(ValueError, match="out does not lie row by row"):
        kernel[1, 32](x, b.asarray(np.zeros((3, 2)))[:, 0], 2.0, 3)
    with pytest.raises(ValueError, match='extern "C"'):
        b.raw_kernel("__global__ void twice() {}", "twice", reference=double)


def test_cuda_c_is_booked_as_one_launch():
    b = nnlab.backend("sim")
    kernel = b.raw_kernel(DOUBLE, "twice", reference=double)
    x, out = b.asarray([1.0, 2.0, 3.0]), b.asarray([0.0, 0.0, 0.0])
    with b.measure() as receipt:
        kernel[1, 32](x, out, 2.0, 3)
    assert receipt.by_operation() == {"twice": 1}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", [fill, axpy, logistic_gradient, block_sums, transpose])
def test_the_same_functions_turn_into_cuda_c(kernel, dtype):
    """Up to the card's own compiler, CuPy needs no card."""
    cupy = pytest.importorskip("cupy")
    from cupyx.jit import _compile, _cuda_types

    from nnlab.backends.cupy_kernels import compiled

    def array(axes: int):
        return _cuda_types.CArray(np.dtype(dtype), axes, True, True)

    number = _cuda_types.Scalar(np.dtype(dtype))
    types = {
        "fill": (array(1), number),
        "axpy": (number, array(1), array(1), array(1)),
        "logistic_gradient": (array(2), array(1), array(1), array(1)),
        "block_sums": (array(1), array(1)),
        "transpose": (array(2), array(2)),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # cupyx.jit says that it is experimental
        function = compiled(cupy, kernel)._func
    code = _compile.transpile(function, ["__global__"], "cuda", types[kernel.__name__], _cuda_types.void).code
    assert f"void {kernel.__name__}(" in code
    assert "static_cast<int>(threadIdx.x + blockIdx.x * blockDim.x)" in code
    if kernel is block_sums:
        assert "__syncthreads()" in code


@pytest.mark.gpu
def test_a_kernel_that_does_something_else_is_found_out():
    usable, reason = nnlab.gpu_available()
    if not usable:
        pytest.skip(reason)
    b = nnlab.backend("cupy")
    kernel = b.raw_kernel(DOUBLE.replace("factor * x[i]", "factor + x[i]"), "twice", reference=double)
    with pytest.raises(KernelFault, match=r"out\[0\] is 4.0, but must be 3.0; 2 of 3 elements differ"):
        kernel[1, 32].check(b.asarray([1.0, 3.0, 1.5]), b.asarray([0.0, 0.0, 0.0]), 3.0, 3)

    @b.kernel
    def unknown(x):
        x[0] = sorted(x)[0]

    with pytest.raises(EngineCannot, match="kernel unknown cannot be compiled"):
        unknown[1, 1](b.asarray([1.0]))


@pytest.mark.gpu
def test_float64_kernels_stay_float64(rng):
    usable, reason = nnlab.gpu_available()
    if not usable:
        pytest.skip(reason)
    b = nnlab.backend("cupy", dtype="float64")
    x, y = rng.normal(size=(2, 100))
    out = b.asarray(np.zeros(100))
    b.kernel(axpy)[4, 32].check(2.0, b.asarray(x), b.asarray(y), out)
    b.kernel(axpy)[4, 32](2.0, b.asarray(x), b.asarray(y), out)
    np.testing.assert_allclose(b.to_host(out), np.tanh(2 * x + y), rtol=1e-12)
