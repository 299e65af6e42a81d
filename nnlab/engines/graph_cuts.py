"""How step.cu's products are cut into blocks: as a rough model of an H200 finds fastest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

THREADS = 256  # of a block
PROCESSORS = 132  # of an H200; other cards get the same cuts
CLOCK = 1.755e9
MOST_SHARED = 100 * 1024  # bytes of a block, so that two fit on a multiprocessor
START = 1.4e-6  # seconds between the beginnings of two small kernels in a graph
LATENCY = 900  # cycles from asking for numbers until they lie in shared memory
BARRIER = 60  # cycles
FETCH = 20  # cycles of issuing, to bring a thread four numbers
LEAST_SHARE = 5  # rows of a split gradient that a block takes, a power of 2
CACHE_RATE, CACHE_BYTES, MEMORY_RATE = 6.0e12, 40e6, 3.6e12
SHAPES = (  # of a thread's numbers, and of a block's
    ((8, 8), (128, 128), (256, 64)),
    ((8, 4), (128, 64), (256, 32), (64, 128)),
    ((4, 4), (64, 64), (128, 32), (64, 32), (32, 64), (32, 32), (16, 32), (32, 16)),
    ((2, 4), (32, 64), (16, 32), (8, 32), (16, 64)),
    ((2, 2), (32, 32), (16, 16), (8, 16), (32, 8), (16, 8)),
    ((1, 4), (1, 32), (1, 16), (1, 8), (2, 64), (4, 32), (4, 16), (2, 32)),
    ((4, 1), (64, 1), (128, 1)),
    ((1, 1), (64, 1), (32, 1), (16, 1), (8, 1), (16, 4), (8, 4), (4, 4), (1, 4), (1, 1)),
)
DEPTHS = (4, 8, 16, 32, 64, 128, 256)


class Cut(NamedTuple):
    """As in step.cu: the numbers of a product that a block makes, terms at a time, the numbers that a thread makes."""

    down: int
    across: int
    depth: int
    thread_down: int
    thread_across: int

    @property
    def slices(self) -> int:
        """Threads that share the terms of the same numbers."""
        return THREADS * self.thread_down * self.thread_across // (self.down * self.across)

    @property
    def shared_bytes(self) -> int:
        """Of a block: two stages of both factors, or the sums of all slices."""
        stages = 2 * self.depth * (_stride(self.down) + _stride(self.across))
        sums = self.slices * self.down * self.across if self.slices > 1 else 0
        return 4 * max(stages, sums, THREADS)

    @property
    def resident(self) -> int:
        """Blocks that a multiprocessor can hold."""
        by_registers = {64: 2, 32: 3}.get(self.thread_down * self.thread_across, 4)
        return min(by_registers, 2 * MOST_SHARED // self.shared_bytes)

    def blocks(self, down: int, across: int) -> int:
        """How many make a product of down x across numbers."""
        return -(-down // self.down) * -(-across // self.across)

    def cycles(self, terms: int, neighbours: int) -> float:
        """That a block takes for so many terms, `neighbours` on one multiprocessor."""
        reads = -(-self.thread_down // 4) + -(-self.thread_across // 4)
        multiply = self.depth / self.slices * (self.thread_down * self.thread_across + 2 * reads)
        fetch = FETCH * (-(-self.down * self.depth // 4 // THREADS) + -(-self.across * self.depth // 4 // THREADS))
        busy = THREADS / 128 * (multiply + fetch)  # a multiprocessor begins 128 multiplications a cycle
        stage = max(neighbours * busy, LATENCY, busy) + BARRIER
        finish = 4.0 * self.slices * self.down * self.across / THREADS if self.slices > 1 else 0.0
        return LATENCY + -(-terms // self.depth) * stage + finish * neighbours

    def seconds(self, down: int, across: int, terms: int) -> float:
        """That a kernel takes for a product of down x across numbers, each the sum of so many terms."""
        blocks = self.blocks(down, across)
        neighbours = min(self.resident, -(-blocks // PROCESSORS))
        waves = -(-blocks // (PROCESSORS * neighbours))
        moved = 4.0 * (down * terms + 2 * down * across)
        memory = moved / (CACHE_RATE if moved < CACHE_BYTES else MEMORY_RATE)
        return START + max(waves * self.cycles(terms, neighbours) / CLOCK, memory)


def cuts() -> Iterator[Cut]:
    """All there are."""
    for (thread_down, thread_across), *shapes in SHAPES:
        for down, across in shapes:
            for depth in DEPTHS:
                cut = Cut(down, across, depth, thread_down, thread_across)
                if depth % cut.slices == 0 and cut.shared_bytes <= MOST_SHARED:
                    yield cut


def best_cut(down: int, across: int, terms: int) -> Cut:
    """The fastest for a product of its own."""
    return min(cuts(), key=lambda cut: cut.seconds(down, across, terms))


def gradient_cuts(layers: Sequence[tuple[int, int]], rows: int) -> tuple[list[Cut], list[int]]:
    """The cut and the number of splits of every layer's gradient (inputs x outputs numbers), made in one launch.

    Either no gradient is split, or all rows are dealt out in shares of about one size, and another launch adds up.
    """
    choices = []
    for share in (rows, *(2**power for power in range(LEAST_SHARE, rows.bit_length()))):
        splits = -(-rows // share)
        for hurried in (False, True):  # one block should be done soon, or all of them together
            chosen = [min(cuts(), key=lambda cut: _gradient_cost(cut, *layer, share, hurried)) for layer in layers]
            parts = [splits] * len(layers)
            seconds = gradient_seconds(layers, rows, chosen, parts)
            if splits > 1:
                seconds += update_seconds(sum(splits * (fan_in + 1) * fan_out for fan_in, fan_out in layers))
            choices.append((seconds, chosen, parts))
    _, chosen, parts = min(choices, key=lambda choice: choice[0])
    return chosen, parts


def gradient_seconds(
    layers: Sequence[tuple[int, int]], rows: int, chosen: Sequence[Cut], splits: Sequence[int]
) -> float:
    """That the launch for all gradients takes."""
    blocks = [cut.blocks(*layer) * parts for layer, cut, parts in zip(layers, chosen, splits, strict=True)]
    neighbours = min(*(cut.resident for cut in chosen), -(-sum(blocks) // PROCESSORS))
    cycles = [cut.cycles(-(-rows // parts), neighbours) for cut, parts in zip(chosen, splits, strict=True)]
    together = sum(number * each for number, each in zip(blocks, cycles, strict=True)) / (PROCESSORS * neighbours)
    moved = 4.0 * rows * sum(fan_in + fan_out for fan_in, fan_out in layers)
    memory = moved / (CACHE_RATE if moved < CACHE_BYTES else MEMORY_RATE)
    return START + max(*cycles, together, memory * CLOCK) / CLOCK


def update_seconds(parts: int) -> float:
    """That adding up so many numbers takes, with the update."""
    return START + 1e-6 + 4.0 * parts / CACHE_RATE


def _gradient_cost(cut: Cut, fan_in: int, fan_out: int, rows: int, hurried: bool) -> float:
    cycles = cut.cycles(rows, 1 if hurried else cut.resident)
    return cycles if hurried else cycles * cut.blocks(fan_in, fan_out) / cut.resident


def _stride(side: int) -> int:
    """Floats from one term to the next in shared memory, as in step.cu."""
    return side if side < 4 else side + 4
