"""The fused engine's plan for wide networks: one product after another over all rows, with fused ends.

gemm.cu keeps every level's activations in the card's memory and needs no layer to fit into a block, so that width is
bound by little else than memory. A step is two launches for each layer between the first and the last, and a few more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from nnlab.engines.chain import Chain
from nnlab.engines.fused_plan import Card, Plan, Run, constants

GEMM_KERNEL = "gemm"
ROW_TILE, NARROW_TILE, DEPTH = 128, 64, 32  # as in levels.cuh and operands.cuh
COLUMN_TILES = (128, NARROW_TILE)  # the first one that leaves room for stages
TEAMS, TEAM, END_THREADS = 2, 128, 512
MOST_STAGES = 3  # two were 3 % slower on an H200
FEW_INPUTS, MOST_INPUTS, MOST_WIDTH = 3, 64, 1024
MOST_HEAD = 64  # numbers of the last layer's weight that each lane of a warp keeps the gradient of
LAUNCH = 7e-6  # seconds that a launch takes the host
CARD_RATE = {1: 128e12, 3: 51e12}  # operations a second of a whole H200, by products
LEVEL_RATE = 3e12  # bytes a second
LEVEL_PASSES = 6  # of a step over each level
LIMITS = f"two or more hidden layers of up to {MOST_WIDTH} columns, up to {MOST_INPUTS} inputs and few outputs"


@dataclass(frozen=True)
class GemmPlan(Plan):
    """`cluster` is how many multiprocessors the card has, and so how many blocks its kernels get."""

    splits: dict[int, int] = field(default_factory=dict)  # of the rows, in the gradients of a group's weights

    @property
    def products(self) -> int:
        """TF32 products for one of float32."""
        return int(self.constants["PRODUCTS"])

    @property
    def padded(self) -> tuple[int, ...]:
        """Each level's width as the kernels have it; inputs and outputs are not padded."""
        inputs, *hidden, outputs = self.chain.widths
        return (inputs, *(_rounded_up(width, NARROW_TILE) for width in hidden), outputs)

    @property
    def padded_rows(self) -> int:
        return _rounded_up(self.rows, ROW_TILE)

    @property
    def stages(self) -> int:
        """Stages of a product that a team has in shared memory."""
        return int(self.constants["STAGES"])

    def rows_at_once(self, level: int) -> int:
        """Blocks that share the rows, each with its columns of a level; there are as many as multiprocessors."""
        tiles = -(-self.padded_rows // (ROW_TILE * TEAMS))
        return max(1, min(tiles, self.cluster // (self.padded[level] // self.tile(level))))

    def product_floats(self, numbers: int, size: int) -> int:
        """FLOATS of RowProduct in gemm.cu, where rows have so many numbers, and a block so many columns."""
        stages = TEAMS * self.stages * DEPTH
        staying = numbers * size + stages * ROW_TILE + size
        return staying if 4 * staying <= self.shared_bytes else stages * (ROW_TILE + size) + size

    def weight_blocks(self, group: int) -> tuple[int, int]:
        """Blocks that a weight's gradient takes, and how many shares of the rows each of them has.

        The teams of a block have tiles one under the other, or else, where these are an odd number, a share each.
        """
        down, across = (self.padded[level] // self.tile(level) for level in (group, group + 1))
        return (down * across, TEAMS) if down % TEAMS else (down // TEAMS * across, 1)

    @property
    def groups(self) -> dict[int, list[int]]:
        """Middle layers whose gradients are one launch, by the first of them."""
        found: dict[int, list[int]] = {}
        for layer in self.middle:
            found.setdefault(self.same("weights", layer), []).append(layer)
        return found

    @property
    def delta_levels(self) -> list[int]:
        """Levels at which dLoss/dz is written down."""
        return list(range(2 if self.few_inputs else 1, len(self.padded) - 1))

    @property
    def few_inputs(self) -> bool:
        """Whether the first layer's gradients are summed by the kernel that makes dLoss/dz for it."""
        return self.chain.widths[0] <= FEW_INPUTS

    @property
    def first_blocks(self) -> int:
        """Blocks that leave sums for the gradients of the first layer."""
        return self.rows_at_once(1) if self.few_inputs else self.cluster

    @property
    def middle(self) -> range:
        """The layers that are products."""
        return range(1, len(self.chain.biases) - 1)

    def tile(self, level: int) -> int:
        """Columns (or rows) of a level that a block of a product takes."""
        wide = int(self.constants["COLUMN_TILE"])
        return NARROW_TILE if self.padded[level] % wide else wide

    def has_slopes(self, layer: int) -> bool:
        """Whether a layer's slopes take an array of their own."""
        return self.products == 3 and self.chain.activations[layer] == "sine"

    @property
    def head_sums(self) -> int:
        """Sums that a block of the last layer's kernel leaves."""
        outputs = self.chain.widths[-1]
        return (outputs + 1) * self.padded[-2] + outputs + 1

    @property
    def memory_bytes(self) -> int:
        """Device memory beside the model's own, but for what is small."""
        levels = sum(
            width * (1 + (self.has_slopes(level - 1) or level in self.delta_levels))
            for level, width in enumerate(self.padded[1:-1], 1)
        )
        sums = sum(
            self.splits[group] * len(layers) * self.padded[group] * self.padded[group + 1]
            for group, layers in self.groups.items()
        )
        return 4 * (self.padded_rows * levels + sums)

    def same(self, kind: str, layer: int) -> int:
        """The first layer whose kernel of this kind is the same; it is compiled once."""
        return next(other for other in self.middle if self._signature(kind, other) == self._signature(kind, layer))

    def _signature(self, kind: str, layer: int) -> tuple[object, ...]:
        shape = self.padded[layer : layer + 2]
        chain, behind = self.chain, layer if kind == "forward" else layer - 1
        ends = kind == "backward" and layer == 1 and self.few_inputs
        return shape if kind == "weights" else (shape, chain.activations[behind], chain.omegas[behind], ends)

    @property
    def source(self) -> str:
        wanted = {
            (kind, self.same(kind, layer)) for kind in ("forward", "backward", "weights") for layer in self.middle
        }
        return super().source + "".join(f"{kind.upper()}({layer})\n" for kind, layer in sorted(wanted))

    @property
    def kernels(self) -> tuple[str, ...]:
        """The launches of a step, in order."""
        forward = (f"forward_{layer}" for layer in self.middle)
        backward = (f"backward_{layer}" for layer in reversed(self.middle))
        weights = (f"weights_{group}" for group in self.groups)
        ends = () if self.few_inputs else ("first_gradients",)
        return ("first_layer", *forward, "head", *backward, *weights, *ends, "update_all")

    @property
    def card_seconds(self) -> float:
        """What a step takes an H200: the arithmetic, or what moves through its memory."""
        arithmetic = sum(6.0 * self.padded_rows * a * b for a, b in pairwise(self.padded)) / CARD_RATE[self.products]
        return max(arithmetic, LEVEL_PASSES * 4 * self.padded_rows * sum(self.padded[1:-1]) / LEVEL_RATE)

    @property
    def step_seconds(self) -> float:
        return max(LAUNCH * len(self.kernels), self.card_seconds)

    @property
    def kernel_seconds(self) -> float:
        """Of a launch, on average."""
        return self.card_seconds / len(self.kernels)

    def __str__(self) -> str:
        products = {1: "TF32", 3: "3xTF32"}[self.products]
        return f"gemm in {products}"


def gemm_plan(chain: Chain, run: Run, card: Card, *, products: int) -> GemmPlan | None:
    """The plan, or None where it does not fit: fewer than two hidden layers, or too many inputs, outputs or columns."""
    inputs, *hidden, outputs = chain.widths
    if len(hidden) < 2 or inputs > MOST_INPUTS or max(hidden) > MOST_WIDTH or card.capability < (8, 0):
        return None
    if outputs * _rounded_up(hidden[-1], NARROW_TILE) // 32 > MOST_HEAD:
        return None
    for tile in COLUMN_TILES:
        stages = min(MOST_STAGES, (card.shared_bytes - 4 * tile) // (4 * TEAMS * DEPTH * (ROW_TILE + tile)))
        if stages >= 2:
            break
    else:
        return None
    more = {"PRODUCTS": products, "STAGES": stages, "COLUMN_TILE": tile, "SHARED_LIMIT": card.shared_bytes}
    sizes = constants(chain, run, 1, TEAMS * TEAM, **more)
    plan = GemmPlan(GEMM_KERNEL, chain, card.multiprocessors, TEAMS * TEAM, card.shared_bytes, 0, sizes)
    for group, layers in plan.groups.items():
        blocks, shares = plan.weight_blocks(group)
        most = -(-plan.padded_rows // (DEPTH * shares))
        plan.splits[group] = max(1, min(most, card.multiprocessors // (blocks * len(layers))))
    return plan


def _rounded_up(n: int, unit: int) -> int:
    return -(-n // unit) * unit
