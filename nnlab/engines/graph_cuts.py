"""How step.cu's products are cut into blocks: as a rough model of an H200 finds fastest."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import NamedTuple

THREADS = 256  # of a block
ISSUES = THREADS / 128  # cycles that one instruction of a block takes its multiprocessor
PROCESSORS = 132  # of an H200; other cards get the same cuts
CLOCK = 1.755e9
MOST_SHARED = 100 * 1024  # bytes of a block, so that two fit on a multiprocessor
START = 1.0e-6  # seconds between the beginnings of two small kernels in a graph
FIRST = 500  # cycles until the first numbers lie in shared memory
BARRIER = 170  # cycles that a stage loses, with its wait
READ = 0.5  # cycles of issuing, to read four numbers from shared memory; most of it is hidden
BANKS = 4  # cycles that shared memory takes for it, in those of issuing
FETCH = 60  # cycles of issuing, to bring a thread four numbers
FINISH = 28  # cycles of issuing for each number of a thread, from sum to memory
MOST_FETCHED = 24  # floats in a thread's registers, beside its sums
MOST_HELD = 72  # floats there, of both kinds, where rows are turned around, which takes registers too
LEAST_SHARE = 32  # rows of a split gradient that a block takes
MOST_SPLITS = 128
CACHE_RATE, CACHE_BYTES, MEMORY_RATE = 8.3e12, 40e6, 3.2e12
SHAPES = (  # of a thread's numbers, and of a block's
    ((8, 8), (128, 128), (256, 64)),
    ((8, 4), (128, 64), (256, 32)),
    ((4, 8), (32, 64), (64, 64)),
    ((4, 4), (64, 64), (128, 32), (64, 32), (32, 64), (32, 32), (16, 32)),
    ((2, 4), (32, 64), (8, 32)),
    ((2, 2), (32, 32), (16, 16), (8, 16)),
    ((1, 4), (1, 32), (1, 16), (1, 8), (2, 64)),
    ((1, 2), (1, 4), (8, 64)),
    ((1, 1), (128, 1), (64, 1), (32, 1), (16, 1), (16, 4), (8, 4)),
)
DEPTHS = (4, 8, 16, 32, 64, 128, 256)


class Cut(NamedTuple):
    """As in product.cuh: numbers of a product that a block makes, terms at a time, numbers that a thread makes."""

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
    def fetched(self) -> int:
        """Floats that a thread keeps in registers, from memory on their way to its block's shared memory."""
        return self.depth * (self.down + self.across) // THREADS

    @property
    def resident(self) -> int:
        """Blocks that a multiprocessor holds at once."""
        by_registers = {64: 2, 32: 3}.get(self.thread_down * self.thread_across, 4)
        return min(by_registers, 2 * MOST_SHARED // self.shared_bytes)

    def blocks(self, down: int, across: int) -> int:
        """How many make a product of down x across numbers."""
        return -(-down // self.down) * -(-across // self.across)

    def cycles(self, terms: int, neighbours: int) -> float:
        """That a block takes for so many terms, `neighbours` on one multiprocessor."""
        reads = -(-self.thread_down // 4) + -(-self.thread_across // 4)
        numbers = self.thread_down * self.thread_across
        multiply = self.depth / self.slices * max(numbers + READ * reads, BANKS * reads)
        fetch = FETCH * sum(-(-side * self.depth // 4 // THREADS) for side in (self.down, self.across))
        stage = ISSUES * neighbours * (multiply + fetch) + BARRIER
        finish = numbers / self.slices * (ISSUES * FINISH + (4 * self.slices if self.slices > 1 else 0))
        return FIRST + -(-terms // self.depth) * stage + neighbours * finish

    def seconds(self, down: int, across: int, terms: int) -> float:
        """That a kernel takes for a product of down x across numbers, each the sum of so many terms."""
        blocks = self.blocks(down, across)
        neighbours = min(self.resident, -(-blocks // PROCESSORS))
        full, rest = divmod(blocks, PROCESSORS * neighbours)
        cycles = full * self.cycles(terms, neighbours)
        if rest:
            cycles += self.cycles(terms, -(-rest // PROCESSORS))
        moved = 4.0 * (down * terms + 2 * down * across)
        return START + max(cycles / CLOCK, _memory_seconds(moved))


def cuts() -> Iterator[Cut]:
    """All there are."""
    for (thread_down, thread_across), *shapes in SHAPES:
        for down, across in shapes:
            for depth in DEPTHS:
                cut = Cut(down, across, depth, thread_down, thread_across)
                if depth % cut.slices == 0 and cut.shared_bytes <= MOST_SHARED and cut.fetched <= MOST_FETCHED:
                    yield cut


def best_cut(down: int, across: int, terms: int) -> Cut:
    """The fastest for a product of its own; of those within a tenth of a microsecond, the one with fewest blocks."""
    fitting = (cut for cut in cuts() if cut.thread_down * cut.thread_across + cut.fetched <= MOST_HELD)
    return min(fitting, key=lambda cut: (round(1e7 * cut.seconds(down, across, terms)), cut.blocks(down, across)))


def gradient_cuts(layers: Sequence[tuple[int, int]], rows: int) -> tuple[list[Cut], list[int]]:
    """The cut and the number of splits of every layer's gradient (inputs x outputs numbers), made in one launch.

    Either no gradient is split, or all rows are dealt out in shares of about one size, and another launch adds up.
    """
    weights = sum(fan_in * fan_out for fan_in, fan_out in layers)
    choices = []
    for splits in sorted({round(2 ** (quarter / 4)) for quarter in range(4 * MOST_SPLITS.bit_length())}):
        if splits > 1 and rows // splits < LEAST_SHARE:
            break
        chosen = [
            _gradient_cut(fan_in, fan_out, -(-rows // splits), splits, PROCESSORS * fan_in * fan_out / weights)
            for fan_in, fan_out in layers
        ]
        seconds = gradient_seconds(layers, rows, chosen, [splits] * len(layers))
        if splits > 1:
            seconds += update_seconds(splits, weights)
        choices.append((seconds, chosen, splits))
    _, chosen, splits = min(choices, key=lambda choice: choice[0])
    return chosen, [splits] * len(layers)


def _gradient_cut(fan_in: int, fan_out: int, rows: int, splits: int, processors: float) -> Cut:
    """The cut for one layer, which has a part of the card, so many multiprocessors, to itself."""

    def cycles(cut: Cut) -> float:
        blocks = cut.blocks(fan_in, fan_out) * splits
        neighbours = 1 if blocks <= processors else 2
        return cut.cycles(rows, neighbours) * max(1.0, blocks / (processors * neighbours))

    return min(cuts(), key=cycles)


def gradient_seconds(
    layers: Sequence[tuple[int, int]], rows: int, chosen: Sequence[Cut], splits: Sequence[int]
) -> float:
    """That the launch for all gradients takes."""
    blocks = [cut.blocks(*layer) * parts for layer, cut, parts in zip(layers, chosen, splits, strict=True)]
    neighbours = min(2, -(-sum(blocks) // PROCESSORS))  # all layers need the registers of the greediest
    cycles = [cut.cycles(-(-rows // parts), neighbours) for cut, parts in zip(chosen, splits, strict=True)]
    ends = [0.0] * (PROCESSORS * neighbours)  # when each place for a block is free; blocks start in order
    for number, each in zip(blocks, cycles, strict=True):
        for _ in range(number):
            heapq.heapreplace(ends, ends[0] + each)
    moved = 4.0 * rows * sum(fan_in + fan_out for fan_in, fan_out in layers)
    return START + max(max(ends) / CLOCK, _memory_seconds(moved))


def _memory_seconds(moved: float) -> float:
    return moved / (CACHE_RATE if moved < CACHE_BYTES else MEMORY_RATE)


def update_seconds(splits: int, weights: int) -> float:
    """That adding up the parts of so many weights' gradients takes, with the update."""
    return START + 1.5e-6 + 0.05e-6 * splits + 4.0 * splits * weights / CACHE_RATE


def _stride(side: int) -> int:
    """Floats from one term to the next in shared memory, as in product.cuh."""
    return side if side < 4 else side + 4
