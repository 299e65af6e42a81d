"""Pools, limits and running out on a real card (case D-04)."""

from __future__ import annotations

import pytest

import nnlab
from nnlab.errors import DeviceOutOfMemory, DoubleFree

pytestmark = pytest.mark.gpu


def test_used_and_held_memory_are_told_apart(gpu):
    """Case D-04."""
    b = nnlab.backend("cupy", pool="default", memory=2**30)
    b.release_memory()
    used, held = b.memory()[:2]  # what earlier tests of this process keep

    def more():
        return b.memory().used - used, b.memory().held - held

    first = b.xp.empty((256, 512, 512, 2), "float32")
    assert more() == (536_870_912, 536_870_912)
    assert b.memory().limit == 2**30
    del first
    assert more() == (0, 536_870_912)
    second = b.xp.empty((256, 512, 512, 3), "float32")
    assert more()[0] == 805_306_368
    assert b.memory().peak - used == 805_306_368
    cycle = [second]
    cycle.append(cycle)
    del second, cycle
    b.release_memory()
    assert more() == (0, 0)


@pytest.mark.parametrize("pool", ["default", "none", "async"])
def test_out_of_memory_states_bytes_and_is_survived(gpu, pool):
    b = nnlab.backend("cupy", pool=pool, memory=2**20)
    kept = b.xp.zeros(2**16, "float32")
    with pytest.raises(DeviceOutOfMemory, match=r"no 1,048,576 bytes.*use 262,144.*limit is 1,048,576"):
        b.xp.zeros(2**18, "float32")
    assert float(kept.sum()) == 0.0


def test_the_card_itself_runs_out(gpu):
    b = nnlab.backend("cupy", pool="none")
    with pytest.raises(DeviceOutOfMemory, match=r"backend\.release_memory"):
        b.xp.empty(2**50, "uint8")
    assert float(b.xp.ones(3).sum()) == 3.0


def test_every_pool_gives_the_same_numbers_and_its_own_counts(gpu):
    for pool, allocations, hits in [("default", 1, 1), ("none", 2, 0), ("async", 2, None)]:
        b = nnlab.backend("cupy", pool=pool)
        with b.measure() as receipt:
            for _ in range(2):
                x = b.xp.zeros(100, "float32")
                del x
        assert (receipt.allocations, receipt.pool_hits) == (allocations, hits), pool
        assert receipt.peak_bytes == 512, pool
        assert b.memory().used == 0
    with pytest.raises(nnlab.errors.UnknownName, match="default"):
        nnlab.backend("cupy", pool="defualt")
    with pytest.raises(ValueError, match="memory=0"):
        nnlab.backend("cupy", memory=0)


@pytest.mark.parametrize("pool", ["default", "none", "async"])
def test_a_block_is_given_back_once(gpu, pool):
    b = nnlab.backend("cupy", pool=pool)
    block = b.allocate(1000)
    assert b.memory().used == 1024
    block.free()
    b.synchronize()
    assert b.memory().used == 0
    with pytest.raises(DoubleFree, match="1,000 bytes was given back before"):
        block.free()


def test_the_release_threshold_decides_what_a_wait_hands_back(gpu):
    for threshold, kept in [(0, False), (2**30, True)]:
        b = nnlab.backend("cupy", pool="async", release_threshold=threshold)
        x = b.xp.zeros(2**20, "uint8")
        del x
        b.synchronize()
        assert (b.memory().held > 0) is kept
        b.release_memory()
