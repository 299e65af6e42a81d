"""Which of the fused engine's kernels fits a run, and with what sizes: everything that is known before compiling."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from nnlab.backends import Array
from nnlab.engines.chain import ACTIVATIONS, Chain, loss_number, optimizer_number, optimizer_settings
from nnlab.optim import TrainState

MOST_ROWS_TILE = 128  # rows that a block of loop_rows takes through the network at once
MOST_ROWS_WEIGHTS = 32  # rows a step that loop_weights takes
MOST_THREADS = 1024
MOST_STEPS = 8_192  # a launch: more would only lengthen the tables of rates
SLICE_SECONDS = 0.025
# Fitted on an H200 to steps of 3.85 us (6-64-1 on 321 rows), 5.40 and 22.5 us (784-256-128-10 on 1 and 32 rows).
# Another one took 3.48 and 5.27 us for the first two: data/recordings/steps-h200.json.
WAIT = 0.53e-6  # seconds
BLOCK_RATE = {"loop_rows": 100e9, "loop_weights": 155e9}  # operations a second of one block
KERNELS = Path(__file__).with_name("kernels")
SOURCES = {
    "loop_rows": ("network.cuh", "cluster.cuh", "loop_rows.cu"),
    "loop_weights": ("network.cuh", "cluster.cuh", "shards.cuh", "loop_weights.cu"),
    "tile": (
        "network.cuh",
        "cluster.cuh",
        "grid_barrier.cuh",
        "async.cuh",
        "mma.cuh",
        "tile_layout.cuh",
        "tile_rows.cuh",
        "tile_weights.cuh",
        "tile_update.cuh",
        "tile.cu",
    ),
    "gemm": (
        "network.cuh",
        "mma.cuh",
        "async.cuh",
        "levels.cuh",
        "operands.cuh",
        "first.cuh",
        "gemm.cu",
        "last.cuh",
        "update.cuh",
    ),
    "loop_grid": (
        "network.cuh",
        "mma.cuh",
        "cluster.cuh",
        "async.cuh",
        "grid_barrier.cuh",
        "grid_mail.cuh",
        "grid_operands.cuh",
        "grid_memory.cuh",
        "grid_product.cuh",
        "grid_step.cuh",
        "loop_grid.cu",
    ),
}


class Card(NamedTuple):
    """What a plan depends on: compute capability, the bytes of shared memory a block may have, multiprocessors."""

    capability: tuple[int, int]
    shared_bytes: int
    multiprocessors: int = 132

    @property
    def clusters(self) -> tuple[int, ...]:
        """How many blocks may work as one cluster, most first. Clusters came with compute capability 9.0."""
        return (16, 8, 4, 2, 1) if self.capability >= (9, 0) else (1,)


class Run(NamedTuple):
    """What the kernels are compiled for: rows a step takes, whether a table says which, the loss, the optimiser."""

    rows: int
    batched: bool
    loss: int
    optimizer: int
    memories: int
    settings: dict[str, float]


def run_of(state: TrainState, x: Array) -> Run:
    """What a run on x asks of the kernels. Raises EngineCannot for a loss or an optimiser they do not know."""
    return Run(
        rows=state.batch_size or len(x),
        batched=state.batch_size is not None,
        loss=loss_number(state.loss),
        optimizer=optimizer_number(state.optimizer),
        memories=len(state.optimizer.memories),
        settings=optimizer_settings(state.optimizer),
    )


@dataclass(frozen=True)
class Plan:
    """A kernel and its sizes. constants: what its source needs defined; barriers: waits of the cluster in a step.

    memory_floats: device memory that loop_weights needs for what the optimiser remembers.
    """

    kernel: str
    chain: Chain
    cluster: int
    threads: int
    shared_bytes: int
    barriers: int
    constants: dict[str, str]
    memory_floats: int = 0

    @property
    def rows(self) -> int:
        """Rows a step takes."""
        return int(self.constants["ROWS"])

    @property
    def spare_rows(self) -> int:
        """Rows of zeros that loop_weights needs behind the input."""
        return 1

    @property
    def input_stride(self) -> int:
        """Floats a row of the input takes in loop_weights, with its one and its padding."""
        return _odd_quads(self.chain.widths[0] + 1)

    @property
    def step_seconds(self) -> float:
        """What a step takes on an H200, roughly: each wait of a block or the cluster, and the arithmetic."""
        layers = len(self.chain.biases)
        arithmetic = 6.0 * self.rows * self.chain.parameters
        return WAIT * (2 * layers + self.barriers) + arithmetic / (self.cluster * BLOCK_RATE[self.kernel])

    @property
    def slice_steps(self) -> int:
        """Steps a launch: well under a tenth of a second, on a card a few times slower too."""
        return max(1, min(MOST_STEPS, int(SLICE_SECONDS / self.step_seconds)))

    @property
    def sizes(self) -> str:
        """The constants as the kernels' source wants them, in front of it."""
        return "".join(f"#define {name} {value}\n" for name, value in self.constants.items())

    @property
    def source(self) -> str:
        """The CUDA C of the kernel, with its sizes."""
        return self.sizes + "".join((KERNELS / name).read_text("utf-8") for name in SOURCES[self.kernel])

    def __str__(self) -> str:
        blocks = "one block" if self.cluster == 1 else f"a cluster of {self.cluster} blocks"
        return f"{self.kernel} on {blocks}"


def plans(chain: Chain, run: Run, card: Card) -> Iterator[Plan]:
    """All plans that fit the card, the one to take first; none where the network is too large."""
    yield from _rows_plans(chain, run, card)
    if run.rows <= MOST_ROWS_WEIGHTS and len(chain.biases) > 1:
        yield from _weights_plans(chain, run, card)


def constants(chain: Chain, run: Run, cluster: int, threads: int, **more: int) -> dict[str, str]:
    """What network.cuh and a kernel need defined in front of them."""
    values = {
        "WIDTHS": ", ".join(map(str, chain.widths)),
        "BIASES": ", ".join(map(str, chain.biases)),
        "ACTIVATIONS": ", ".join(str(ACTIVATIONS.index(name)) for name in chain.activations),
        "OMEGAS": ", ".join(f"{omega!r}f" for omega in chain.omegas),
        "LOSS": run.loss,
        "OPTIMIZER": run.optimizer,
        "ROWS": run.rows,
        "BATCHED": int(run.batched),
        "CLUSTER": cluster,
        "THREADS": threads,
        **{name: f"{value!r}f" for name, value in run.settings.items()},
    }
    return {name: str(value) for name, value in (values | more).items()}


def _rows_plans(chain: Chain, run: Run, card: Card) -> Iterator[Plan]:
    for cluster in card.clusters:
        if cluster > 8 or (cluster > 1 and run.rows < 16 * cluster):  # a block without rows to speak of only costs
            continue
        block_rows = _rounded_up(-(-run.rows // cluster), 4)
        tiles = {min(block_rows, tile) for tile in (MOST_ROWS_TILE, 64, 32, 16)}
        for tile in sorted(tiles, reverse=True):
            size = 4 * _rows_floats(chain, run, cluster, tile, tiled=block_rows > tile)
            if size <= card.shared_bytes:
                work = max(max(chain.widths[1:]) * tile // 4, chain.parameters)
                rounds = -(-work // MOST_THREADS)
                threads = max(64, _rounded_up(-(-work // rounds), 32))
                values = constants(chain, run, cluster, threads, TILE=tile, SHARED_BYTES=size)
                yield Plan("loop_rows", chain, cluster, threads, size, 1, values)


def _rows_floats(chain: Chain, run: Run, cluster: int, tile: int, *, tiled: bool) -> int:
    """Floats of `Block` in loop_rows.cu."""
    parameters, stride = chain.parameters, _odd_quads(tile)
    levels = sum(width + 1 for width in chain.widths) * stride
    values = levels - (chain.widths[-1] + 1) * stride
    sums = parameters + 1
    rest = parameters * (1 + run.memories) + 1 + 2 * cluster * sums + (sums if tiled else 1)
    return _rounded_up(rest + 4, 4) + values + levels + 2 * chain.widths[-1] * stride


def _weights_plans(chain: Chain, run: Run, card: Card, threads: int = 512) -> Iterator[Plan]:
    for cluster in card.clusters:
        for x_shared in (1, 0):
            lines, floats = _weights_floats(chain, run, cluster, threads, x_shared=bool(x_shared))
            if floats and 4 * floats <= card.shared_bytes:
                values = constants(chain, run, cluster, threads, X_SHARED=x_shared, SHARED_BYTES=4 * floats)
                barriers = max(2, 2 * len(chain.biases) - 3)
                memories = cluster * run.memories * lines
                yield Plan("loop_weights", chain, cluster, threads, 4 * floats, barriers, values, memories)


def _weights_floats(chain: Chain, run: Run, cluster: int, threads: int, *, x_shared: bool) -> tuple[int, int]:
    """Floats of the weights in a block of loop_weights.cu, and of its whole `Block`; 0 for a layer that is too wide."""
    widths, last = chain.widths, len(chain.biases)
    tall = 1 if run.rows == 1 else _rounded_up(run.rows, 4)
    spans = -(-tall // 4)
    own = [0, *(_rounded_up(-(-width // cluster), 4) for width in widths[1:last]), _rounded_up(widths[-1], 4)]
    lines = rest = scratch = 0
    for level, width in enumerate(widths):
        if level < last:
            lines += own[level + 1] * _odd_quads(width + 1)
            rest += tall * _odd_quads(width + 1) if level or x_shared else 0
        if 1 <= level < last:
            lines += own[level] * _odd_quads(widths[level + 1])
            rest += 2 * tall * own[level]
        if level >= 2:
            rest += tall * _odd_quads(width)
        if level:
            lanes = 1
            while lanes < own[level] // 4 * spans:
                lanes *= 2
            if lanes > threads:
                return 0, 0
            scratch = max(scratch, (threads // max(lanes, 32)) * tall * own[level])
    return lines, lines + rest + scratch + 2 * tall * own[last] + _rounded_up(tall, 4)


def _rounded_up(n: int, unit: int) -> int:
    return -(-n // unit) * unit


def _odd_quads(n: int) -> int:
    """As in network.cuh: the next multiple of 4 that is 4 times an odd number."""
    up = _rounded_up(n, 4)
    return up if up // 4 % 2 else up + 4
