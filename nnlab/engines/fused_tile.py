"""The fused engine's plan for coordinate networks: all weights and a tile of rows in each block's shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from nnlab.engines.chain import Chain
from nnlab.engines.fused_plan import Card, Plan, Run, constants

TILE_KERNEL = "tile"
TILE = 64  # rows, as in tile_layout.cuh
ROW_WARPS, WEIGHT_WARPS = TILE // 16, 8
THREADS = 32 * (ROW_WARPS + WEIGHT_WARPS)
LEAST_ROWS = 64 * TILE  # with fewer, most of a card's multiprocessors would have no tile
MOST_WIDTH = 128
WRITTEN_OUT = {  # what the compiler writes out, as tile.cu says, by products; measured on an H200
    1: {"STEPS": 4, "WEIGHT_STEPS": 2, "GROUP": 4},
    3: {"STEPS": 2, "WEIGHT_STEPS": 2, "GROUP": 2},
}
CARD_RATE = {1: 71e12, 3: 39e12}  # operations a second of a whole H200, by products
STEP_SECONDS = 10e-6  # two barriers of the whole card, and what is done between them, on an H200


@dataclass(frozen=True)
class TilePlan(Plan):
    """`blocks` share the tiles, and wait for one another twice a step."""

    blocks: int = 0

    @property
    def step_seconds(self) -> float:
        arithmetic = 6.0 * self.rows * self.chain.parameters / CARD_RATE[int(self.constants["PRODUCTS"])]
        return STEP_SECONDS + arithmetic

    @property
    def sums(self) -> int:
        """Floats that each block hands over: its gradients and its loss, in whole quads."""
        return -(-(self.chain.parameters + 1) // 4) * 4

    @property
    def workspace(self) -> int:
        """Floats of device memory for what blocks tell one another: WORKSPACE of tile_update.cuh."""
        return self.blocks * self.sums + _image_floats(self.chain)

    def __str__(self) -> str:
        products = {"1": "TF32", "3": "3xTF32"}[self.constants["PRODUCTS"]]
        return f"tile in {products}"


def tile_plan(chain: Chain, run: Run, card: Card, *, products: int) -> TilePlan | None:
    """The plan, or None where it does not fit: one layer, sines, widths above 128, few rows, too much for a block."""
    size = 4 * (TILE * sum(_padded(chain)) + _image_floats(chain))
    fits = len(chain.biases) > 1 and "sine" not in chain.activations and max(chain.widths) <= MOST_WIDTH
    if not fits or size > card.shared_bytes or run.rows < LEAST_ROWS or card.capability < (8, 0):
        return None
    blocks = min(card.multiprocessors, -(-run.rows // TILE))
    more = {"SHARED_BYTES": size, "PRODUCTS": products, "BLOCKS": blocks, **WRITTEN_OUT[products]}
    sizes = constants(chain, run, 1, THREADS, **more)
    return TilePlan(TILE_KERNEL, chain, 1, THREADS, size, 2, sizes, blocks=blocks)


def _padded(chain: Chain) -> list[int]:
    return [-(-width // 16) * 16 for width in chain.widths]


def _image_floats(chain: Chain) -> int:
    """IMAGE of tile_layout.cuh: the weights and biases, padded."""
    return sum((inputs + 1) * outputs for inputs, outputs in pairwise(_padded(chain)))
