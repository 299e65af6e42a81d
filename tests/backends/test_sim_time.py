"""Modelled time: who waits for whom."""

from __future__ import annotations

import numpy as np
import pytest

import nnlab

MIB = 2**20


def warm(b):
    """Compile what the tests below use, so that they measure no first calls."""
    x = b.asarray(np.ones((8, 8)))
    busy(b, 0)
    float((x * 2.0).sum() + (x @ x).sum())
    b.matmul(x, x)
    return b


@pytest.fixture
def sim(sim):
    return warm(sim)


def busy(b, milliseconds=10):
    """Queue so many milliseconds of work on the device, and return at once."""
    b.launch("busy", (), lambda: None, seconds=1e-3 * milliseconds)


def test_launches_return_at_once_and_a_read_waits(sim):
    with sim.measure() as receipt:
        start = sim.clock()
        busy(sim)
        queued = sim.clock() - start
        sim.synchronize()
        done = sim.clock() - start
    assert queued < 0.002
    assert 0.01 < done < 0.011
    assert receipt.waits == receipt.syncs == 1


@pytest.mark.parametrize(("size", "waits"), [(4, 0), (MIB, 0), (4 * MIB, 1)])
def test_small_uploads_do_not_wait_and_large_ones_do(sim, size, waits):
    host = np.zeros(size // 4, np.float32)
    with sim.measure() as receipt:
        busy(sim)
        start = sim.clock()
        sim.asarray(host)
        spent = sim.clock() - start
    assert receipt.waits == waits
    assert (spent > 0.005) == bool(waits)


def test_pinned_uploads_are_faster_and_do_not_wait(sim):
    host = np.zeros(16 * MIB, np.float32)
    with sim.measure() as pageable:
        sim.asarray(host)
    locked = sim.pinned(host)
    with sim.measure() as pinned:
        sim.asarray(locked[: len(host)])
    assert pinned.seconds < pageable.seconds / 5
    assert (pageable.waits, pinned.waits) == (1, 0)
    assert pinned.h2d_bytes == pageable.h2d_bytes == host.nbytes


def test_a_download_into_pinned_memory_need_not_wait(sim):
    x = sim.asarray([1.0, 2.0])
    out = sim.pinned(np.zeros(2, np.float32))
    with sim.measure() as receipt:
        sim.to_host(x, out=out, blocking=False)
        x *= 0.0
        assert receipt.waits == 0
        assert out.tolist() == [0.0, 0.0]  # not there yet
        sim.synchronize()
    assert out.tolist() == [1.0, 2.0]
    assert (receipt.d2h_copies, receipt.waits) == (1, 1)
    with pytest.raises(ValueError, match="pinned"):
        sim.to_host(x, out=np.zeros(2, np.float32), blocking=False)


def test_the_launch_queue_is_finite(sim):
    with sim.measure() as receipt:
        start = sim.clock()
        for _ in range(1500):
            busy(sim, 1)
        spent = sim.clock() - start
    assert receipt.waits == 0
    assert spent == pytest.approx((1500 - 1021) * 1e-3, rel=0.01)  # the host is held back to 1,021 launches ahead


def test_the_first_call_of_a_kernel_compiles():
    b = nnlab.backend("sim")
    x = b.asarray([1.0])
    receipts = []
    for _ in range(2):
        with b.measure() as receipt:
            b.xp.tanh(x)
        receipts.append(receipt)
    first, second = receipts
    assert first.seconds > 0.1
    assert second.seconds < 1e-4
    assert [event.name for event in first.events if event.kind == "compile"] == ["tanh"]


def test_time_synchronises_around_every_reading(sim):
    """D-05"""
    log, count = [], [0]
    synchronize, sim.synchronize = sim.synchronize, lambda: (log.append("sync"), synchronize())

    def clock():
        log.append("clock")
        count[0] += 1
        return float(count[0])

    timing = sim.time(lambda: log.append("run"), warmup=2, repeats=5, clock=clock)
    assert log == ["run", "run"] + ["sync", "clock", "run", "sync", "clock"] * 5
    assert (timing.warmup, timing.repeats, timing.seconds) == (2, 5, (1.0,) * 5)
    assert "5 runs after 2 warm-ups" in str(timing)


def test_time_reads_the_modelled_clock(sim):
    x = sim.asarray(np.ones((256, 256)))
    timing = sim.time(lambda: sim.matmul(x, x), warmup=1, repeats=2)
    assert timing.seconds == pytest.approx(sim.time(lambda: sim.matmul(x, x), warmup=0, repeats=2).seconds, rel=1e-9)
    assert timing.median < 1e-4  # the product itself takes this machine longer


def test_no_product_is_faster_than_the_card(sim):
    device = sim.gpu.device
    for n in (16, 64, 256, 1024, 4096, 8192):
        assert 2 * n**3 / device.product(n, n, n, 4) < 67e12
    assert 2 * 4096**3 / device.product(4096, 4096, 4096, 4) > 40e12


@pytest.mark.parametrize(("warmup", "repeats"), [(-1, 5), (2, 0)])
def test_time_refuses_senseless_counts(sim, warmup, repeats):
    with pytest.raises(ValueError, match="warmup >= 0 and repeats >= 1"):
        sim.time(lambda: None, warmup=warmup, repeats=repeats)


def test_streams_overlap_copies_with_kernels(sim):
    host = sim.pinned(np.zeros(16 * MIB, np.float32))
    stream = sim.stream()
    busy(sim, 1), sim.asarray(host)

    def together():
        busy(sim, 1)
        with stream:
            sim.asarray(host)

    def in_turn():
        busy(sim, 1)
        sim.asarray(host)

    seconds = []
    for way in (together, in_turn):
        with sim.measure() as receipt:
            way()
        seconds.append(receipt.seconds)
    assert seconds[0] < seconds[1] - 0.5e-3


def test_events_order_streams(sim):
    first, second = sim.stream(), sim.stream()
    with first:
        busy(sim, 5)
    event = first.record()
    assert not event.done
    second.wait_event(event)
    with second:
        sim.asarray([1.0])
    assert not second.done
    start = sim.clock()
    event.synchronize()
    assert event.done
    assert first.done
    assert sim.clock() - start > 3e-3
    second.synchronize()
    assert second.done


def test_a_synchronised_stream_leaves_the_others_running(sim):
    stream = sim.stream()
    with stream:
        sim.asarray([1.0])
    busy(sim, 5)
    start = sim.clock()
    stream.synchronize()
    assert sim.clock() - start < 1e-4


def test_the_device_files_tell_measured_from_estimated():
    h200, laptop = (nnlab.backend("sim", device=name).gpu.device for name in ("h200", "laptop"))
    assert h200.measured
    assert not laptop.measured
    assert "estimated" in laptop.title
    assert laptop.product(4096, 4096, 4096, 4) > 4 * h200.product(4096, 4096, 4096, 4)
    assert laptop.product(4096, 4096, 4096, 8) > 20 * laptop.product(4096, 4096, 4096, 4)
    assert h200.product(4096, 4096, 4096, 8) < 2 * h200.product(4096, 4096, 4096, 4)
