"""The fused engine's plan for batches of middling size: the whole card stays for many steps of a dense network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nnlab.engines.chain import Chain
from nnlab.engines.fused_plan import Card, Plan, Run, constants
from nnlab.engines.grid_deal import (
    BARRIER_SECONDS,
    CHUNK,
    SIDE,
    WARPS,
    Product,
    deal,
    divided_up,
    rounded_up,
    rows_seconds,
)

GRID_KERNEL = "loop_grid"
MOST_ROWS = 4096  # a step
MOST_WIDTH = 2048
CLUSTERS = (8, 4, 2, 1)  # blocks in one
MOST_DOWN = 4  # warps' tiles below one another
QUEUED = 80  # strips of 32 lines and a chunk that wait in shared memory
NARROW = 32  # outputs; up to these, a block takes whole rows through the last layer


@dataclass(frozen=True)
class GridPlan(Plan):
    """`blocks` in all, in clusters of `cluster`; workspace: floats of device memory; seconds: estimate of a step."""

    blocks: int = 0
    workspace: int = 0
    seconds: float = 0.0

    @property
    def products(self) -> int:
        """TF32 products for one of float32."""
        return int(self.constants["PRODUCTS"])

    @property
    def step_seconds(self) -> float:
        return self.seconds

    @property
    def spare_rows(self) -> int:
        """Rows of zeros behind the input: they fill up batches, and tiles reach into them."""
        return MOST_DOWN * SIDE

    @property
    def input_stride(self) -> int:
        """Floats a row of the input takes, with its one and its padding."""
        return rounded_up(self.chain.widths[0] + self.chain.biases[0], CHUNK)

    def __str__(self) -> str:
        products = {1: "TF32", 3: "3xTF32"}[self.products]
        return f"loop_grid in {products}"


def grid_plans(chain: Chain, run: Run, card: Card, *, products: int) -> Iterator[GridPlan]:
    """Plans for the card, best first; none for more than 4,096 rows, wider layers or an old card."""
    if run.rows > MOST_ROWS or max(chain.widths) > MOST_WIDTH or card.capability < (8, 0):
        return
    clusters = CLUSTERS if card.capability >= (9, 0) else (1,)
    found = (grid_plan(chain, run, card, cluster, products) for cluster in clusters)
    yield from sorted((plan for plan in found if plan.shared_bytes <= card.shared_bytes), key=lambda plan: plan.seconds)


def grid_plan(chain: Chain, run: Run, card: Card, cluster: int, products: int) -> GridPlan:
    """The plan with clusters of `cluster` blocks."""
    # Clusters lie within groups of multiprocessors; of an H200's 132, 120 take clusters of 4 or 8.
    usable = card.multiprocessors if cluster <= 2 else card.multiprocessors * 10 // 11
    clusters = max(1, usable // cluster)
    blocks, layers, rows = clusters * cluster, len(chain.biases), rounded_up(run.rows, CHUNK)
    inputs = [width + bias for width, bias in zip(chain.widths, chain.biases, strict=False)]
    height = next((h for h in (1, 2) if SIDE * h * clusters >= rows), 4)  # with less, a cluster has several turns
    across = [_across(width, height, cluster) for width in chain.widths]
    narrow = layers > 1 and chain.widths[-1] <= NARROW

    first = deal([Product(rows, chain.widths[1], inputs[0])], cluster, clusters, products)
    shapes = [Product(*sizes, rows) for sizes in zip(inputs, chain.widths[1:], strict=True)]
    gradients = deal(shapes, cluster, clusters, products)
    turns = divided_up(divided_up(rows, SIDE * height), clusters)
    through = turns * rows_seconds(chain.widths[1:], height, across[1:], cluster, narrow=narrow, products=products)
    barriers = 2 if layers == 1 else 3
    workspace = _workspace(chain, run, blocks, products)
    shared = _shared_bytes(rounded_up(run.rows, MOST_DOWN * SIDE) if run.batched else 1)
    sizes = {"BLOCKS": blocks, "HEIGHT": height, "PRODUCTS": products, "WORKSPACE": workspace, "SHARED_BYTES": shared}
    values = constants(chain, run, cluster, 32 * WARPS, **sizes)
    values |= {
        "FIRST_CUT": str(first.cuts[0]),
        "GRADIENT_CUTS": ", ".join(map(str, gradients.cuts)),
        "FORWARD_ACROSS": ", ".join(map(str, across[1:])),
        "BACK_ACROSS": ", ".join(map(str, across[:-1])),
    }
    seconds = first.seconds + through + gradients.seconds + barriers * BARRIER_SECONDS
    return GridPlan(
        GRID_KERNEL,
        chain,
        cluster,
        32 * WARPS,
        shared,
        barriers,
        values,
        blocks=blocks,
        workspace=workspace,
        seconds=seconds,
    )


def _across(width: int, height: int, cluster: int) -> int:
    """Tiles beside one another that a block takes of its cluster's rows, so that all blocks have some."""
    wide_enough = (a for a in (1, 2, 4) if SIDE * a * cluster >= width and a * height <= WARPS)
    return next(wide_enough, min(4, WARPS // height))


def _workspace(chain: Chain, run: Run, blocks: int, products: int) -> int:
    """WORKSPACE of grid_memory.cuh."""
    widths, layers, rows = chain.widths, len(chain.biases), rounded_up(run.rows, CHUNK)
    values = [rounded_up(width + bias, CHUNK) for width, bias in zip(widths, chain.biases, strict=False)]
    deltas = [rounded_up(width, CHUNK) for width in widths]
    copies = 1 + run.memories + int(products == 1)
    weights = sum(copies * values[layer] * deltas[layer + 1] for layer in range(layers))
    slopes = sum(values[level] for level in range(1, layers) if chain.activations[level - 1] == "sine")
    spare = MOST_DOWN * SIDE * (sum(values) + deltas[-1])
    return weights + rows * (sum(values[1:]) + slopes + sum(deltas[1:])) + rounded_up(blocks, CHUNK) + spare


def _shared_bytes(table: int) -> int:
    """`Block` of grid_step.cuh: queue and parts, a piece of 32 x 32, the terms of the loss, tables of row numbers."""
    tables = 2 if table <= MOST_ROWS // 2 else 1
    queue, parts, piece = 4 * QUEUED * SIDE * CHUNK, 16 * WARPS * 8 * 32, 4 * SIDE * (SIDE + 4)
    return rounded_up(queue + parts + piece + 16 + 4 * WARPS + 4 * tables * table, 16)
