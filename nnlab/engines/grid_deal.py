"""How loop_grid.cu's products are dealt out over a card, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

WARPS = 8
SIDE = 32  # of a warp's tile
CHUNK = 16  # steps of k taken at once

# Seconds on an H200 (about 2 GHz), from clock readings inside the kernel: 784-256-128-10 on 32, 256 and 1,024 rows.
BARRIER_SECONDS = 0.7e-6  # of all blocks, and of a cluster
TILE_SECONDS = 1.1e-6  # until a tile's first operands are there, and from the last product to the numbers in memory
SHARING_SECONDS = 0.55e-6  # more, where blocks share a sum
STRIP_SECONDS = 56e-9  # to copy one strip, 2 KB, into a block
CHUNK_SECONDS = {1: 0.25e-6, 3: 0.65e-6}  # to multiply a chunk in each of a block's warps, by products
HIDDEN = 0.7  # the share of the shorter of these two that the longer one hides
NARROW_SECONDS = 0.7e-6  # the way back through a last layer of few outputs


class GridCut(NamedTuple):
    """How a product is dealt out: a block's tiles of 32 x 32, down and across, and how many blocks share in k.

    `Cut` in loop_grid.cu.
    """

    down: int
    across: int
    sharers: int

    def __str__(self) -> str:
        return f"{{{self.down}, {self.across}, {self.sharers}}}"


class Product(NamedTuple):
    """A matrix product: down x across sums over k."""

    down: int
    across: int
    k: int

    def tiles(self, cut: GridCut) -> int:
        """How many tiles there are."""
        return divided_up(self.down, SIDE * cut.down) * divided_up(self.across, SIDE * cut.across)

    def tasks(self, cut: GridCut, cluster: int) -> int:
        """How many tasks for a cluster that makes."""
        return divided_up(self.tiles(cut) * cut.sharers, cluster)

    def seconds(self, cut: GridCut, products: int) -> float:
        """What a block needs for its part of a task."""
        slices = WARPS // (cut.down * cut.across)
        chunks = divided_up(divided_up(self.k, CHUNK), slices * cut.sharers)
        copying = (cut.down + cut.across) * slices * STRIP_SECONDS
        sharing = SHARING_SECONDS if cut.sharers > 1 else 0.0
        shorter, longer = sorted((copying, CHUNK_SECONDS[products]))
        return TILE_SECONDS + sharing + chunks * (longer + (1 - HIDDEN) * shorter)


class Deal(NamedTuple):
    """How the products of a phase are dealt out: the time of the busiest cluster, that of all together, the cuts."""

    seconds: float
    work: float
    cuts: tuple[GridCut, ...]


def deal(phase: list[Product], cluster: int, clusters: int, products: int) -> Deal:
    """The cheapest way found: from the best cut for all alike, each product's own is tried, until none gets better."""
    alike = [(cut,) * len(phase) for cut in _cuts(cluster)]
    found = min(_dealt(phase, cuts, cluster, clusters, products) for cuts in alike)
    while True:
        best = found
        for place in range(len(phase)):
            for cut in _cuts(cluster):
                cuts = (*best.cuts[:place], cut, *best.cuts[place + 1 :])
                best = min(best, _dealt(phase, cuts, cluster, clusters, products))
        if best == found:
            return found
        found = best


def _dealt(phase: list[Product], cuts: tuple[GridCut, ...], cluster: int, clusters: int, products: int) -> Deal:
    """Tasks are dealt out in turn."""
    loads, at = [0.0] * clusters, 0
    for product, cut in zip(phase, cuts, strict=True):
        tasks, cost = product.tasks(cut, cluster), product.seconds(cut, products)
        rounds, rest = divmod(tasks, clusters)
        for i in range(clusters):
            loads[(at + i) % clusters] += (rounds + (i < rest)) * cost
        at += tasks
    return Deal(max(loads), sum(loads), cuts)


def _cuts(cluster: int) -> Iterator[GridCut]:
    for down in (1, 2, 4):
        for across in (1, 2, 4):
            if down * across <= WARPS:
                for sharers in sorted({1, cluster}):
                    yield GridCut(down, across, sharers)


def rows_seconds(
    widths: tuple[int, ...], height: int, across: list[int], cluster: int, *, narrow: bool, products: int
) -> float:
    """What a cluster needs to take 32 * height rows through all layers but the first, and back.

    widths: of the levels from the first layer's output on. across: of each, the tiles that a block takes at once.
    narrow: the last layer has few outputs.
    """
    seconds, rows = 0.0, SIDE * height
    for level, (inputs, outputs) in enumerate(pairwise(widths)):
        if narrow and level == len(widths) - 2:
            there_and_back = Product(SIDE, outputs, inputs).seconds(GridCut(1, 1, 1), products) + NARROW_SECONDS
            seconds += divided_up(height, cluster) * there_and_back
            continue
        forward, back = Product(rows, outputs, inputs), Product(rows, inputs, outputs)
        for product, wide in ((forward, across[level + 1]), (back, across[level])):
            cut = GridCut(height, wide, 1)
            seconds += divided_up(product.tiles(cut), cluster) * product.seconds(cut, products) + BARRIER_SECONDS
    return seconds


def divided_up(n: int, by: int) -> int:
    """n / by, upwards."""
    return -(-n // by)


def rounded_up(n: int, unit: int) -> int:
    """The next multiple of unit."""
    return divided_up(n, unit) * unit
