"""Recording and replaying on a real card (case D-08)."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import nnlab
from nnlab.errors import CaptureError

pytestmark = pytest.mark.gpu


def test_recording_runs_nothing_and_replaying_runs_it(gpu):
    """Case D-08 (a)."""
    x = gpu.asarray(np.arange(10, dtype="int32"))
    with gpu.capture() as graph:
        x += 3
    np.testing.assert_array_equal(gpu.to_host(x), np.arange(10))
    graph.replay()
    np.testing.assert_array_equal(gpu.to_host(x), np.arange(3, 13))
    graph.replay()
    np.testing.assert_array_equal(gpu.to_host(x), np.arange(6, 16))


@pytest.mark.parametrize(
    ("step", "named", "cure"),
    [
        (lambda b, x: x @ x, "matrix product", "backend.matmul"),
        (lambda b, x: b.xp.random.normal(size=3), "random draw", "before recording"),
        (lambda b, x: float(x.sum()), "reading a value", "after graph.replay"),
        (lambda b, x: b.asarray([1.0]), "asarray", "before recording"),
        (lambda b, x: b.to_host(x), "to_host", "after graph.replay"),
        (lambda b, x: b.xp.asnumpy(x), "copy to the host", "after graph.replay"),
        (lambda b, x: x[x > 0], "selection", "xp.where"),
        (lambda b, x: b.synchronize(), "synchronize", "after graph.replay"),
    ],
)
def test_what_cannot_be_recorded_is_named_and_the_stream_lives_on(gpu, step, named, cure):
    """Case D-08 (b) to (d)."""
    x = gpu.asarray(np.ones((3, 3)))
    step(gpu, x)  # first use sets handles and generators up
    with pytest.raises(CaptureError) as caught, gpu.capture() as graph:
        step(gpu, x)
    assert named in str(caught.value)
    assert cure in str(caught.value)
    with pytest.raises(CaptureError, match="not finished"):
        graph.replay()
    assert not gpu.xp.cuda.get_current_stream().is_capturing()
    test_recording_runs_nothing_and_replaying_runs_it(gpu)


def test_other_errors_pass_through_a_recording(gpu):
    with pytest.raises(ZeroDivisionError), gpu.capture():
        1 / 0  # noqa: B018
    test_recording_runs_nothing_and_replaying_runs_it(gpu)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_step_with_products_can_be_recorded(gpu, dtype, rng):
    b = nnlab.backend("cupy", dtype=dtype)
    host_x, host_w = rng.normal(size=(20, 5)).astype(dtype), rng.normal(size=(5, 4)).astype(dtype)
    x, w = b.asarray(host_x), b.asarray(host_w)
    with b.capture() as graph:
        h = b.xp.tanh(b.matmul(x, w))
        gradient = b.matmul(x, h, transpose_a=True)
        w -= 0.01 * gradient
    others = [b.xp.full((20, 4), 7, dtype) for _ in range(50)]  # must not take the memory the graph works in
    for _ in range(3):
        graph.replay()
        host_w -= np.asarray(0.01, dtype) * (host_x.T @ np.tanh(host_x @ host_w))
    np.testing.assert_allclose(b.to_host(w), host_w, rtol=1e-4 if dtype == "float32" else 1e-10, atol=1e-5)
    assert all(float(other.min()) == 7.0 for other in others)
    assert "gemm" in graph.dot().lower() or "digraph" in graph.dot()


def test_a_graphs_memory_is_counted_while_it_lives(gpu):
    gpu.release_memory()  # what earlier tests left to the garbage collector
    before = gpu.memory().used
    x = gpu.xp.ones(2**20, "float32")
    with gpu.capture() as graph:
        y = x * 2.0
        z = y + x
    assert gpu.memory().used - before >= 3 * 2**22
    del graph, x, y, z
    gc.collect()
    assert gpu.memory().used == before
