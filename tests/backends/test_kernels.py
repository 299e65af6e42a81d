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


@pytest.fixture(params=["numpy", "sim"])
def off_card(request):
    return nnlab.backend(request.param)


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


def test_a_race_between_blocks_is_told_by_line(off_card):
    b = off_card

    @b.kernel
    def total(x, out):
        i = cuda.grid(1)
        if i < x.size:
            out[0] += x[i]  # planted

    with pytest.raises(KernelFault) as caught:
        total[2, 2](b.asarray(np.ones(4)), b.asarray(np.zeros(1)))
    message = str(caught.value)
    for part in ("kernel total", "a race for out[0]", "# planted", "thread 0 of block 0 writes", "cuda.atomic_add"):
        assert part in message
    assert total.report.races


def test_a_race_inside_a_block_asks_for_a_barrier(off_card):
    b = off_card

    @b.kernel
    def shift(x):
        i = cuda.grid(1)
        value = x[(i + 1) % x.size]
        x[i] = value

    @b.kernel
    def shift_after_a_barrier(x):
        i = cuda.grid(1)
        value = x[(i + 1) % x.size]
        cuda.syncthreads()
        x[i] = value

    x = b.asarray(np.arange(4.0))
    with pytest.raises(KernelFault, match=r"thread . of block 0 reads it.*thread . of block 0 writes it.*syncthreads"):
        shift[1, 4](x)
    x = b.asarray(np.arange(4.0))
    shift_after_a_barrier[1, 4](x)
    np.testing.assert_array_equal(b.to_host(x), [1.0, 2.0, 3.0, 0.0])
    with pytest.raises(KernelFault, match="Blocks run in any order"):
        shift_after_a_barrier[2, 2](x)


def test_a_race_after_a_barrier_is_found_too(off_card):
    b = off_card

    @b.kernel
    def again(x):
        i = cuda.grid(1)
        if i == 0:
            x[0] = 1.0
        cuda.syncthreads()
        if i > 0:
            x[0] = 2.0  # planted

    with pytest.raises(KernelFault, match=r"thread 1 of block 0 writes.*thread 2 of block 0 writes.*# planted"):
        again[1, 3](b.asarray(np.zeros(1)))


def test_no_race_where_threads_only_read_or_add_atomically(off_card):
    b = off_card

    @b.kernel
    def count(x, out):
        cuda.atomic_add(out, 0, x[0])

    out = b.asarray(np.zeros(1))
    count[3, 4](b.asarray(np.ones(1)), out)
    np.testing.assert_array_equal(b.to_host(out), 12.0)
    assert (count.report.atomics, count.report.races) == (12, [])


def test_reading_what_others_add_to_is_a_race(off_card):
    b = off_card

    @b.kernel
    def late(out, copy):
        cuda.atomic_add(out, 0, 1.0)
        copy[cuda.grid(1)] = out[0]

    with pytest.raises(KernelFault, match=r"adds atomically to it.*reads it|reads it.*adds atomically to it"):
        late[1, 2](b.asarray(np.zeros(1)), b.asarray(np.zeros(2)))


def test_two_names_for_the_same_memory_race_too(off_card):
    b = off_card

    @b.kernel
    def copy(x, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = x[i]

    x = b.asarray(np.arange(5.0))
    with pytest.raises(KernelFault, match="a race for"):
        copy[1, 4](x[:-1], x[1:])


def test_an_access_out_of_range_is_told_by_line(off_card):
    b = off_card

    @b.kernel
    def unguarded(out):
        i = cuda.grid(1)
        out[i] = 1.0  # planted

    with pytest.raises(IndexError) as caught:
        unguarded[2, 4](b.asarray(np.zeros(6)))
    message = str(caught.value)
    for part in ("kernel unguarded", "# planted", "thread 6 of block 1 writes out[6]", "6 elements, 0 to 5", "`if`"):
        assert part in message

    @b.kernel
    def before_the_first(x, out):
        i = cuda.grid(1)
        out[i] = x[i - 1]

    with pytest.raises(IndexError, match=r"thread 0 of block 0 reads x\[-1\]"):
        before_the_first[1, 4](b.asarray(np.zeros(4)), b.asarray(np.zeros(4)))

    @b.kernel
    def wrong_column(x):
        x[0, 3] = 1.0

    with pytest.raises(IndexError, match=r"writes x\[0, 3\], but axis 1 of x has 3 elements"):
        wrong_column[1, 1](b.asarray(np.zeros((2, 3))))

    @b.kernel
    def adds_outside(x):
        cuda.atomic_add(x, 9, 1.0)  # planted

    with pytest.raises(IndexError, match=r"# planted.*adds atomically to x\[9\]"):
        adds_outside[1, 1](b.asarray(np.zeros(2)))


def test_a_barrier_that_not_all_threads_reach(off_card):
    b = off_card

    @b.kernel
    def some(x):
        i = cuda.grid(1)
        if i < 3:
            cuda.syncthreads()
        x[i] = 0.0

    @b.kernel
    def early(x):
        i = cuda.grid(1)
        if i >= 3:
            return
        cuda.syncthreads()
        x[i] = 0.0

    for kernel in (some, early):
        with pytest.raises(KernelFault, match=r"3 of the 4 threads of block 0 wait there"):
            kernel[1, 4](b.asarray(np.zeros(4)))


def test_shared_memory_holds_nothing_before_it_is_written(off_card):
    b = off_card

    @b.kernel
    def careless(out):
        part = cuda.shared_memory(cuda.float32, 4)
        out[cuda.grid(1)] = part[cuda.threadIdx.x]

    out = b.asarray(np.zeros(4))
    careless[1, 4](out)
    assert np.isnan(b.to_host(out)).all()


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


def test_what_a_kernel_may_not_do(off_card):
    b = off_card

    @b.kernel
    def whole(x):
        x[:] = 0.0

    @b.kernel
    def row(x):
        x[0] = 0.0

    @b.kernel
    def fraction(x, n):
        n[0] = x[0, 0]

    x = b.asarray(np.zeros((2, 2)))
    with pytest.raises(TypeError, match="one element by whole numbers"):
        whole[1, 1](x)
    with pytest.raises(TypeError, match="2 axes; a kernel writes one element"):
        row[1, 1](x)
    with pytest.raises(TypeError, match=r"holds int64, and .* is a float"):
        fraction[1, 1](x, b.asarray(np.zeros(1, int)))
    with pytest.raises(EngineCannot, match="too many to interpret"):
        b.kernel(fill)[2000, 1024](b.asarray(np.zeros(4)), 1.0)
    with pytest.raises(RuntimeError, match="inside a kernel"):
        cuda.grid(1)


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
