"""The parts of the CuPy backend that can be held against NumPy without a card."""

from __future__ import annotations

import enum
from types import SimpleNamespace

import numpy as np
import pytest

from nnlab.backends import cupy_blas, cupy_cupti, cupy_graph, cupy_measure
from nnlab.backends.receipt import Receipt
from nnlab.errors import CaptureError


class ColumnMajorLibrary:
    """Reads memory as cuBLAS does: column by column, with a leading dimension, operands in swapped order."""

    def gemm(self, a: cupy_blas.Operand, b: cupy_blas.Operand, out: cupy_blas.Operand) -> None:
        def columns(operand: cupy_blas.Operand) -> np.ndarray:
            rows, size = operand.array.shape[::-1], operand.array.itemsize
            return np.lib.stride_tricks.as_strided(operand.array, rows, (size, operand.stride * size))

        first, second = (columns(x).T if x.transposed else columns(x) for x in (b, a))
        columns(out)[...] = first @ second


def layouts(rows: int, columns: int, dtype: str, rng: np.random.Generator) -> dict[str, np.ndarray]:
    def draw(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(dtype)

    return {
        "rows": draw(rows, columns),
        "columns": np.asfortranarray(draw(rows, columns)),
        "transposed view": draw(columns, rows).T,
        "part of wider rows": draw(rows, columns + 3)[:, :columns],
        "part of longer columns": draw(columns, rows + 3).T[:rows],
        "every second row": draw(2 * rows, columns)[::2],
        "every second column": draw(rows, 2 * columns)[:, ::2],
        "backwards": draw(rows, columns)[::-1],
        "one row for all": np.broadcast_to(draw(columns), (rows, columns)),
    }


@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 4, 5), (3, 1, 5), (3, 4, 1), (1, 1, 1)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_every_layout_reaches_the_library_as_the_same_matrix(shape, dtype, transpose_a, transpose_b, rng, monkeypatch):
    monkeypatch.setattr(cupy_blas, "handle", lambda cupy: ColumnMajorLibrary())
    monkeypatch.setattr(cupy_blas, "_overlaps", lambda cupy, out, *given: any(np.shares_memory(out, x) for x in given))
    m, k, n = shape
    lefts = layouts(*((k, m) if transpose_a else (m, k)), dtype, rng)
    rights = layouts(*((n, k) if transpose_b else (k, n)), dtype, rng)
    for where, a in lefts.items():
        for place, b in rights.items():
            truth = (a.T if transpose_a else a) @ (b.T if transpose_b else b)
            for into, out in layouts(m, n, dtype, rng).items():
                if out.flags.writeable:
                    cupy_blas.matmul(np, a, b, out, transpose_a, transpose_b)
                    np.testing.assert_allclose(out, truth, 1e-4, 1e-5, err_msg=f"{where} x {place} into {into}")


def test_a_product_may_be_written_over_its_operand(rng, monkeypatch):
    monkeypatch.setattr(cupy_blas, "handle", lambda cupy: ColumnMajorLibrary())
    monkeypatch.setattr(cupy_blas, "_overlaps", lambda cupy, out, *given: any(np.shares_memory(out, x) for x in given))
    a, b = rng.normal(size=(4, 4)), rng.normal(size=(4, 4))
    truth = a @ b
    cupy_blas.matmul(np, a, b, a, False, False)
    np.testing.assert_allclose(a, truth)


def test_an_empty_inner_size_gives_zeros():
    out = np.ones((2, 3))
    cupy_blas.matmul(np, np.ones((2, 0)), np.ones((0, 3)), out, False, False)
    np.testing.assert_array_equal(out, 0.0)


@pytest.mark.parametrize(
    ("line", "error", "operation", "cure"),
    [
        ("y = x @ w", NotImplementedError("calling cuBLAS API during stream capture"), "matrix product", "matmul"),
        ("e = draw()", NotImplementedError("calling cuRAND API during stream capture"), "random draw", "fixed buffer"),
        ("l = float(loss)", RuntimeError("the stream is capturing"), "reading a value", "after graph.replay"),
        ("h = x.get()", RuntimeError("cudaErrorStreamCaptureUnsupported"), "copy to the host", "after graph.replay"),
        ("x[x < 0] = 0", RuntimeError("cudaErrorStreamCaptureUnsupported"), "selection", "xp.where"),
        ("surprise()", RuntimeError("cudaErrorStreamCaptureInvalidated"), "surprise()", "outside"),
    ],
)
def test_a_refused_line_is_named_with_its_cure(line, error, operation, cure, tmp_path):
    library = {"error": error}  # the refusal comes from inside CuPy, not from a file of the learner's
    exec(compile("def fail(*_):\n    raise error", "/site-packages/cupy/core.py", "exec"), library)
    fail = library["fail"]

    class Refuses:
        __matmul__ = __float__ = get = __setitem__ = fail

        def __lt__(self, other: object) -> bool:
            return True

    script = tmp_path / "lesson.py"
    script.write_text(line)
    names = {"x": Refuses(), "w": 0, "loss": Refuses(), "draw": fail, "surprise": fail}
    with pytest.raises(type(error)) as caught:
        exec(compile(line, str(script), "exec"), names)
    told = cupy_graph.refusal(caught.value)
    assert isinstance(told, CaptureError)
    for part in (operation, cure, line):
        assert part in str(told)


def test_other_errors_in_a_recording_stay_what_they_are():
    assert cupy_graph.refusal(ValueError("shapes (2,) and (3,) differ")) is None


Kinds = enum.IntEnum("Kinds", "KERNEL CONCURRENT_KERNEL MEMCPY MEMSET SYNCHRONIZATION DRIVER RUNTIME")
Copies = enum.IntEnum("Copies", "HTOD DTOH DTOD PTOP")
Waits = enum.IntEnum("Waits", "STREAM_SYNCHRONIZE STREAM_WAIT_EVENT")
Memories = enum.IntEnum("Memories", "PAGEABLE PINNED DEVICE")


class FakeCupti:
    """CUPTI's calls, with records fed in by hand."""

    ActivityKind, ActivityMemcpyKind, ActivitySynchronizationType = Kinds, Copies, Waits
    ActivityMemoryKind = Memories

    def __init__(self) -> None:
        self.clock, self.enabled, self.waiting = 0, set(), []

    def activity_register_callbacks(self, request, complete):
        assert request() == (8 * 2**20, 0)
        self.complete = complete

    def activity_enable(self, kind):
        self.enabled.add(kind)

    def activity_disable(self, kind):
        self.enabled.discard(kind)

    def activity_flush_all(self, flag):
        self.complete(self.waiting)
        self.waiting = []

    def get_timestamp(self):
        self.clock += 1
        return self.clock

    def happened(self, kind, **what):
        if kind in self.enabled:
            stamp = self.get_timestamp()
            fields = {"start": stamp, "end": stamp, "stream_id": 7, "graph_id": 0, "kind": kind, "correlation_id": 0}
            self.waiting.append(SimpleNamespace(**(fields | what)))

    def synchronize(self):
        self.happened(Kinds.SYNCHRONIZATION, type=Waits.STREAM_SYNCHRONIZE)


def test_the_driver_is_followed_without_our_own_waits():
    cupti = FakeCupti()
    tracer = cupy_cupti.Tracer(cupti)
    cupti.happened(Kinds.CONCURRENT_KERNEL, name="before")
    with tracer.follow(cupti.synchronize) as outer:
        cupti.happened(Kinds.CONCURRENT_KERNEL, name="cupy_multiply__float32_float32_float32")
        with tracer.follow(cupti.synchronize) as inner:
            cupti.happened(Kinds.MEMCPY, copy_kind=Copies.DTOH, bytes=4, src_kind=Memories.DEVICE, dst_kind=1)
            cupti.synchronize()
            cupti.happened(Kinds.SYNCHRONIZATION, type=Waits.STREAM_WAIT_EVENT)
            cupti.happened(Kinds.MEMCPY, copy_kind=Copies.PTOP, bytes=4, src_kind=3, dst_kind=3)
    assert [record.kind for record in inner] == ["d2h", "wait"]
    assert [record.kind for record in outer] == ["kernel", "d2h", "wait"]
    assert cupti.enabled == set()


def test_records_become_counts():
    record = cupy_cupti.Record
    records = [
        record("call", "launch", 1_000, 3_000, number=5),
        record("kernel", "cupy_add__float32", 4_000, 5_000, number=5),
        record("kernel", "in a graph", 1, 2, graph=3),
        record("memset", "memset", 1, 2, bytes=8),
        record("d2d", "d2d", 1, 2, bytes=8),
        record("h2d", "h2d", 1, 2, bytes=100, pageable=True),
        record("h2d", "h2d", 1, 2, bytes=2**22, pageable=True),
        record("h2d", "h2d", 1, 2, bytes=2**22),
        record("d2h", "d2h", 1, 2, bytes=4),
        record("wait", "stream_synchronize", 1, 2),
    ]
    receipt, meter = Receipt(), cupy_measure.Meter()
    meter.replayed()
    meter.copied("h2d", "asarray", 2**22, 0.0, held=True)
    cupy_measure._add_records(receipt, records, meter)
    assert receipt.launches == 4
    assert (receipt.h2d_copies, receipt.h2d_bytes) == (3, 100 + 2**23)
    assert (receipt.d2h_copies, receipt.d2h_bytes) == (1, 4)
    assert receipt.waits == 3  # the wait itself, and a large upload from ordinary memory, through our door and not
    cupy_measure._add_timeline(receipt, cupy_measure.Meter(), records, zero=0)
    assert receipt.by_operation() == {"add": 1, "memset": 1, "d2d": 1}
    launch = next(event for event in receipt.events if event.kind == "launch" and event.name == "add")
    kernel = next(event for event in receipt.events if event.kind == "kernel" and event.name == "add")
    assert (launch.lane, launch.start, launch.end) == ("host", 1e-6, 3e-6)
    assert (kernel.lane, kernel.start, kernel.end) == ("device", 4e-6, 5e-6)


@pytest.mark.parametrize(
    ("kernel", "operation"),
    [
        ("cupy_multiply__float32_float32_float32", "multiply"),
        ("cupy_true_divide__float_float_float", "true_divide"),
        ("cupy_sum", "sum"),
        ("sm90_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize64x64", "matmul"),
        ("cub::DeviceReduceKernel", "cub::DeviceReduceKernel"),
    ],
)
def test_kernel_names_tell_the_operation(kernel, operation):
    assert cupy_measure.operation_name(kernel) == operation
