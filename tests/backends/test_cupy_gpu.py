"""The CuPy backend on a real card. Skipped, with the reason, where there is none."""

from __future__ import annotations

import os
import warnings

import numpy as np
import pytest

import nnlab
from nnlab.backends.cupy_cupti import tracer
from nnlab.errors import BackendUnavailable, MixedBackendError, ShapeError

pytestmark = pytest.mark.gpu


def test_the_card_says_where_arrays_live(gpu):
    assert nnlab.gpu().name == "cupy"
    assert nnlab.available_backends() == ["numpy", "sim", "cupy"]
    assert gpu.home.startswith("GPU 0 (")
    x = gpu.asarray([1.0, 2.0])
    assert nnlab.backends.backend_of(x).home == gpu.home
    assert gpu.owns(x)
    assert not gpu.owns(np.ones(2))


def test_the_doors_keep_types_and_values(gpu):
    for host, dtype in [
        ([1.5, 2.5], "float32"),
        (np.arange(3.0), "float32"),
        (np.arange(3), "int64"),
        (np.array([True, False]), "bool"),
        (2.5, "float32"),
        (np.zeros((0, 3)), "float32"),
        (np.arange(6.0).reshape(2, 3).T, "float32"),
    ]:
        array = gpu.asarray(host)
        assert array.dtype == dtype
        back = gpu.to_host(array)
        assert isinstance(back, np.ndarray)
        np.testing.assert_array_equal(back, host)
    x = gpu.asarray([1.0])
    assert gpu.asarray(x) is x
    assert gpu.asarray(x, dtype="float64").dtype == "float64"
    assert nnlab.backend("cupy", dtype="float64").asarray(x).dtype == "float64"
    with pytest.raises(TypeError, match="holds numbers"):
        gpu.asarray(["a"])


def test_mixed_homes_are_refused_with_the_cure(gpu):
    x, host = gpu.asarray([[1.0]]), np.ones((1, 1), "float32")
    with pytest.raises(MixedBackendError, match=r"b lives on the host.*backend\.asarray\(b\)"):
        gpu.matmul(x, host)
    with pytest.raises(MixedBackendError):
        gpu.to_host(host)
    with pytest.raises(MixedBackendError):
        nnlab.backend("numpy").asarray(x)
    sim = nnlab.backend("sim")
    with pytest.raises(MixedBackendError):
        gpu.asarray(sim.asarray([1.0]))
    with pytest.raises(MixedBackendError):
        sim.asarray(x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_equal_numpy_in_every_layout(gpu, dtype, rng):
    b = nnlab.backend("cupy", dtype=dtype)
    for m, k, n in [(7, 5, 3), (1, 5, 3), (7, 1, 3), (7, 5, 1), (1, 1, 1), (300, 64, 1), (64, 3000, 128)]:
        host_a, host_b = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
        truth = host_a @ host_b
        scale = float(np.abs(truth).max()) * (1e-5 if dtype == "float32" else 1e-12)
        a, wide = b.asarray(host_a), b.asarray(np.repeat(host_b, 2, axis=1))
        for left, transpose_a in ((a, False), (b.asarray(host_a.T), True), (b.asarray(host_a.T).T, False)):
            for right, transpose_b in ((b.asarray(host_b), False), (b.asarray(host_b.T), True), (wide[:, ::2], False)):
                product = b.matmul(left, right, transpose_a=transpose_a, transpose_b=transpose_b)
                assert product.dtype == dtype
                np.testing.assert_allclose(b.to_host(product), truth, rtol=0, atol=scale)
                out = b.xp.zeros((m, 2 * n), dtype)[:, :n]
                assert b.matmul(left, right, out=out, transpose_a=transpose_a, transpose_b=transpose_b) is out
                np.testing.assert_allclose(b.to_host(out), truth, rtol=0, atol=scale)
    square = b.asarray(rng.normal(size=(4, 4)))
    truth = b.to_host(square) @ b.to_host(square)
    b.matmul(square, square, out=square)
    np.testing.assert_allclose(b.to_host(square), truth, rtol=1e-4, atol=1e-5)


def test_products_of_wrong_sizes_and_other_types(gpu):
    x = gpu.asarray(np.ones((2, 3)))
    with pytest.raises(ShapeError, match="inner sizes 3 and 2 differ"):
        gpu.matmul(x, x)
    np.testing.assert_array_equal(gpu.to_host(gpu.matmul(gpu.xp.zeros((2, 0), "f"), gpu.xp.zeros((0, 2), "f"))), 0.0)
    ints = gpu.asarray(np.arange(4).reshape(2, 2))
    np.testing.assert_array_equal(gpu.to_host(gpu.matmul(ints, ints)), np.arange(4).reshape(2, 2) @ [[0, 1], [2, 3]])


def test_a_receipt_counts_what_passes_the_doors(gpu):
    host = np.ones((100, 10), "float32")
    with gpu.measure() as receipt:
        x = gpu.asarray(host)
        scalar = gpu.asarray(2.0)
        y = x * scalar
        gpu.synchronize()
        gpu.to_host(y)
    assert (receipt.h2d_copies, receipt.h2d_bytes) == (2, 4004)
    assert (receipt.d2h_copies, receipt.d2h_bytes) == (1, 4000)
    assert receipt.syncs == 1
    assert receipt.allocations + receipt.pool_hits == 3
    assert receipt.peak_bytes == 4096 + 512 + 4096
    assert receipt.seconds > 0
    assert not receipt.modelled
    assert receipt.home == gpu.home
    if tracer() is None:
        assert receipt.launches is None
        assert receipt.waits is None
        assert "not available" in receipt.table()


def test_cupti_counts_launches_copies_and_waits(gpu):
    if tracer() is None:
        pytest.skip("cupti-python is not installed")
    x = gpu.asarray(np.ones((50, 40)))
    y, out = gpu.asarray(np.ones((40, 30))), gpu.xp.empty((50, 30), "float32")

    def work() -> None:
        gpu.matmul(x, y, out=out)
        gpu.xp.tanh(out, out=out)
        out.fill(0)
        total = out.sum()
        assert float(total) == 0.0
        gpu.to_host(out)

    work()
    with gpu.measure() as receipt:
        work()
    print(receipt.by_operation(), receipt.events)  # shown where an assert below fails
    operations = receipt.by_operation()
    assert operations["matmul"] == 1
    assert operations["tanh"] == 1
    assert (receipt.h2d_copies, receipt.d2h_copies, receipt.d2h_bytes) == (0, 2, 4 + 6000)
    assert receipt.waits == 2
    assert receipt.syncs == 0
    assert 4 <= receipt.launches <= 6  # CUB may sum in two passes, cuBLAS may split the product
    with gpu.capture() as graph:
        gpu.xp.tanh(out, out=out)
        gpu.xp.tanh(out, out=out)
    with gpu.measure() as receipt:
        graph.replay()
    assert receipt.launches == 1
    with gpu.measure() as receipt:
        pass
    assert (receipt.launches, receipt.waits, receipt.h2d_copies, receipt.d2h_copies) == (0, 0, 0, 0)


def test_streams_events_and_pinned_memory(gpu):
    first, second = gpu.stream(), gpu.stream()
    with gpu.measure() as receipt:
        with first:
            x = gpu.xp.ones(1000, "float32")
            event = first.record()
        second.wait_event(event)
        with second:
            y = x + 1
        second.synchronize()
    assert receipt.syncs == 1
    assert float(y.sum()) == 2000.0
    out = gpu.pinned(np.zeros(1000, "float32"))
    assert gpu.to_host(y, out=out, blocking=False) is out
    gpu.synchronize()
    np.testing.assert_array_equal(out, 2.0)
    np.testing.assert_array_equal(gpu.to_host(gpu.asarray(gpu.pinned(np.arange(3.0)))), np.arange(3.0))
    with pytest.raises(ValueError, match="page-locked"):
        gpu.to_host(y, out=np.zeros(1000, "float32"), blocking=False)
    with pytest.raises(ValueError, match="page-locked"):
        gpu.to_host(y, blocking=False)


def test_timed_products_do_not_beat_the_card(gpu):
    """Case D-05: 1.374e11 floating-point operations, against a peak no card of today reaches in float32."""
    x = gpu.xp.ones((4096, 4096), "float32")
    out = gpu.xp.empty_like(x)
    timing = gpu.time(lambda: gpu.matmul(x, x, out=out), warmup=2, repeats=5)
    assert (timing.warmup, timing.repeats) == (2, 5)
    assert 1.374e11 / timing.min < 2e14


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_is_told_that_the_gpu_does_not_work_there(gpu):
    gpu.asarray([1.0])
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns that threads do not survive a fork either
        child = os.fork()
    if child == 0:
        try:
            gpu.asarray([1.0])
            os.write(write, b"no error")
        except BackendUnavailable as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    told = os.read(read, 10_000).decode()
    os.close(read)
    assert "forked" in told
    assert "spawn" in told
