"""The fused engine's plan for coordinate networks: all weights and a tile of rows in each block's shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from nnlab.engines.fused_network import Chain
from nnlab.engines.fused_plan import Card, Plan, Run, constants

TILE_KERNEL = "tile"
TILE = 64  # rows, as in tile.cu
WARPS = 8
LEAST_ROWS = 64 * TILE  # with fewer, most of a card's multiprocessors would have no tile
MOST_WIDTH = 128
UNROLL = {1: 2, 3: 1}  # by products; measured on an H200
CARD_RATE = {1: 34e12, 3: 20e12}  # operations a second of a whole H200, by products
UPDATE_SECONDS = 10e-6  # the second kernel, on an H200
LAUNCHES = 15e-6  # seconds that two launches a step take the host


@dataclass(frozen=True)
class TilePlan(Plan):
    """`cluster` is how many blocks share the tiles; they do not talk to one another."""

    @property
    def step_seconds(self) -> float:
        arithmetic = 6.0 * self.rows * self.chain.parameters / CARD_RATE[int(self.constants["PRODUCTS"])]
        return max(LAUNCHES, arithmetic)

    @property
    def sums(self) -> int:
        """Numbers that each block hands over: its gradients and its loss."""
        return self.chain.parameters + 1

    def __str__(self) -> str:
        products = {"1": "TF32", "3": "3xTF32"}[self.constants["PRODUCTS"]]
        return f"tile on {self.cluster} blocks of {self.threads} threads, products in {products}"


def tile_plan(chain: Chain, run: Run, card: Card, *, products: int) -> TilePlan | None:
    """The plan, or None where it does not fit: sines, widths above 128, few rows, or too much for shared memory."""
    floats = _shared_floats(chain)
    fits = "sine" not in chain.activations and max(chain.widths) <= MOST_WIDTH and 4 * floats <= card.shared_bytes
    if not fits or run.rows < LEAST_ROWS or card.capability < (8, 0):
        return None
    blocks = min(card.multiprocessors, -(-run.rows // TILE))
    more = {"SHARED_BYTES": 4 * floats, "PRODUCTS": products, "UNROLL": UNROLL[products]}
    sizes = constants(chain, run, 1, 32 * WARPS, **more)
    return TilePlan(TILE_KERNEL, chain, blocks, 32 * WARPS, 4 * floats, 0, sizes)


def _shared_floats(chain: Chain) -> int:
    """SHARED_FLOATS of tile.cu."""
    units = [8, *[16] * (len(chain.widths) - 2), 8]
    padded = [-(-width // unit) * unit for width, unit in zip(chain.widths, units, strict=True)]
    levels = sum(TILE * (width + 4) for width in padded)
    weights = sum((inputs + 1) * (outputs + 4) for inputs, outputs in pairwise(padded))
    return levels + weights + WARPS
