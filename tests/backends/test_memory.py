"""Memory of the simulated GPU: pools, streams, running out, giving back."""

from __future__ import annotations

import numpy as np
import pytest

import nnlab
from nnlab.errors import DeviceOutOfMemory, DoubleFree, UnknownName

MIB = 2**20


def test_used_and_held(sim):
    """D-04: what is deleted is not in use, but held by the pool until it is released."""
    first = sim.xp.empty((256, 512, 512, 2), dtype="float32")
    assert sim.memory()[:3] == (536_870_912, 536_870_912, 2**30)
    del first
    assert sim.memory()[:2] == (0, 536_870_912)
    second = sim.xp.empty((256, 512, 512, 3), dtype="float32")  # fits only if the pool gives back what it held
    assert sim.memory()[:2] == (805_306_368, 805_306_368)
    del second
    sim.release_memory()
    assert sim.memory() == (0, 0, 2**30, 805_306_368)


def test_release_collects_garbage_first(sim):
    circle = [sim.xp.empty(MIB, dtype="int8")]
    circle.append(circle)
    del circle
    sim.release_memory()
    assert sim.memory()[:2] == (0, 0)


def test_out_of_memory_states_all_four_numbers():
    b = nnlab.backend("sim", memory=4 * MIB)
    kept = b.xp.zeros(3 * MIB, dtype="int8")
    told = "asked 2,097,152 bytes; used 3,145,728, held 3,145,728, limit 4,194,304"
    with pytest.raises(DeviceOutOfMemory, match=told):
        b.xp.zeros(2 * MIB, dtype="int8")
    assert float(kept.sum()) == 0
    del kept
    assert b.xp.zeros(4 * MIB, dtype="int8").size == 4 * MIB


def test_an_upload_that_does_not_fit_is_refused():
    b = nnlab.backend("sim", memory=1024)
    with b.measure() as receipt, pytest.raises(DeviceOutOfMemory):
        b.asarray(np.ones(10_000))
    assert receipt.h2d_copies == 0


def test_sizes_are_rounded_to_512_bytes(sim):
    number = sim.xp.zeros((), dtype="float32")
    assert number.nbytes == 4
    assert sim.memory().used == 512


def test_an_empty_array_needs_no_memory(sim):
    empty = sim.xp.zeros((0, 5), dtype="float32")
    assert sim.memory().used == 0
    assert float(empty.sum()) == 0.0


def test_the_default_pool_reuses_splits_and_merges(sim):
    block = sim.xp.empty(8 * 512, dtype="int8")
    del block
    with sim.measure() as receipt:
        parts = [sim.xp.empty(4 * 512, dtype="int8"), sim.xp.empty(4 * 512, dtype="int8")]
    assert (receipt.allocations, receipt.pool_hits) == (0, 2)
    assert sim.memory()[:2] == (8 * 512, 8 * 512)
    parts.pop(0)
    parts.pop(0)
    with sim.measure() as receipt:
        whole = sim.xp.empty(8 * 512, dtype="int8")
    assert (receipt.allocations, receipt.pool_hits) == (0, 1)
    assert sim.memory().held == 8 * 512
    del whole


def test_the_default_pool_takes_the_smallest_block_that_fits(sim):
    blocks = [sim.xp.empty(n * 512, dtype="int8") for n in (9, 3, 6)]
    blocks.clear()
    kept = sim.xp.empty(3 * 512, dtype="int8")
    also = sim.xp.empty(8 * 512, dtype="int8")
    assert sim.memory().held == 18 * 512
    assert (kept.size, also.size) == (3 * 512, 8 * 512)


def test_a_part_in_use_keeps_its_block_from_being_released(sim):
    block = sim.xp.empty(8 * 512, dtype="int8")
    del block
    part = sim.xp.empty(512, dtype="int8")
    sim.release_memory()
    assert sim.memory()[:2] == (512, 8 * 512)
    del part
    sim.release_memory()
    assert sim.memory()[:2] == (0, 0)


def test_a_block_freed_on_one_stream_is_not_reused_on_another(sim):
    block = sim.xp.empty(MIB, dtype="int8")
    del block
    stream = sim.stream()
    with sim.measure() as receipt, stream:
        first = sim.xp.empty(MIB, dtype="int8")
        del first
        second = sim.xp.empty(MIB, dtype="int8")
    assert (receipt.allocations, receipt.pool_hits) == (1, 1)
    assert sim.memory().held == 2 * MIB
    assert second.size == MIB


def test_without_a_pool_every_array_asks_the_driver():
    b = nnlab.backend("sim", pool="none")
    x = b.asarray(np.ones(1000))
    with b.measure() as receipt:
        for _ in range(5):
            x * 2.0
    assert (receipt.allocations, receipt.pool_hits) == (5, 0)
    assert b.memory().used == b.memory().held == 4096


def test_the_async_pool_hands_its_reserve_back_at_a_wait():
    b = nnlab.backend("sim", pool="async")
    block = b.xp.empty(MIB, dtype="int8")
    del block
    assert b.memory().held == MIB
    b.synchronize()
    assert b.memory().held == 0


def test_a_release_threshold_keeps_the_reserve():
    b = nnlab.backend("sim", pool="async", release_threshold=MIB)
    for size, held in ((MIB, MIB), (2 * MIB, 0)):
        block = b.xp.empty(size, dtype="int8")
        del block
        b.synchronize()
        assert b.memory().held == held


def test_pools_cost_time_in_the_order_of_the_measurements():
    seconds = {}
    for pool in ("none", "default", "async"):
        b = nnlab.backend("sim", pool=pool)
        x = b.asarray(np.ones(2**20))
        x * 2.0
        with b.measure() as receipt:
            for _ in range(10):
                x * 2.0
        seconds[pool] = receipt.seconds
    assert seconds["default"] < seconds["async"] < seconds["none"]


def test_double_free(sim):
    block = sim.allocate(1000)
    assert sim.memory().used == 1024
    block.free()
    assert sim.memory().used == 0
    with pytest.raises(DoubleFree, match=r"1,000 bytes.*once"):
        block.free()
    assert sim.memory().used == 0


@pytest.mark.parametrize(("option", "value"), [("pool", "slab"), ("device", "h20")])
def test_unknown_names(option, value):
    with pytest.raises(UnknownName, match=f"unknown .* '{value}'"):
        nnlab.backend("sim", **{option: value})


def test_a_device_needs_memory():
    with pytest.raises(ValueError, match="at least 1 byte"):
        nnlab.backend("sim", memory=0)


def test_peak_is_the_highest_use(sim):
    x = sim.xp.zeros(MIB, dtype="int8")
    y = x + 1
    del y
    assert sim.memory().peak == 2 * MIB
    with sim.measure() as receipt:
        x + 1 + 1
    assert receipt.peak_bytes == 3 * MIB
