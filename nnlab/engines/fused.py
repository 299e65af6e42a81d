"""The fused engine: many steps in one launch of a kernel of our own, without Python in between.

Small networks fit into the shared memory of a few neighbouring multiprocessors, which run the whole training loop:
`kernels/loop_rows.cu` deals the rows out over the blocks, `kernels/loop_weights.cu` the weights. Dense networks on
batches of some ten to some thousand rows run it on the whole card: `kernels/loop_grid.cu`. Networks on the many pixels
of a picture keep the whole card busy: up to 128 wide in one kernel, `kernels/tile.cu`, and wider or with sines with two
launches a layer and a few more, `kernels/gemm.cu`. Plans choose among them.
A slice is short, so that Ctrl-C, logs and a display wait a tenth of a second at most.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from nnlab.backends import Array
from nnlab.engines.base import Compiled, Engine, Session
from nnlab.engines.chain import chain
from nnlab.engines.fused_gemm import LIMITS, gemm_plan
from nnlab.engines.fused_grid import MOST_ROWS, grid_plans
from nnlab.engines.fused_plan import Card, Plan, plans, run_of
from nnlab.engines.fused_tile import tile_plan
from nnlab.errors import EngineCannot
from nnlab.optim import TrainState

OLDEST = (8, 0)  # compute capability


class Loop(ABC):
    """A plan made ready on one device. `launch` queues steps and does not wait for them."""

    plan: Plan

    @abstractmethod
    def launch(self, losses: Array, factors: Array, rows: Array | None) -> None:
        """Take len(losses) steps. factors (steps, k): the optimiser's; rows (steps, batch size): numbers, or None."""


class FusedSession(Session):
    """Slices of steps, queued at once; the next slice's rates and rows are worked out while the device runs."""

    def __init__(self, state: TrainState, x: Array, y: Array, loop: Loop) -> None:
        self.state, self.x, self.y, self.loop = state, x, y, loop
        self.backend, self.compiled = state.model.backend, Compiled(state)

    def advance(self, n: int) -> Array:
        self.compiled.check(self.state)
        state, b, longest = self.state, self.backend, self.loop.plan.slice_steps
        losses = b.xp.empty(n, dtype=b.dtype)
        taken, table = 0, self._table(min(n, longest))
        while taken < n and not self.stop():
            count = self._take(losses[taken : taken + longest], table)
            state.step += count
            state.optimizer.step += count
            taken += count
            table = self._table(min(n - taken, longest))
            b.synchronize()
        return losses[:taken]

    def _take(self, losses: Array, table: tuple[np.ndarray, np.ndarray | None]) -> int:
        """Launch a slice of len(losses) steps; how many it takes."""
        self.loop.launch(losses, *self._upload(table))
        return len(losses)

    def _table(self, count: int) -> tuple[np.ndarray, np.ndarray | None]:
        """The factors and the rows of the next `count` steps."""
        state = self.state
        rows = state.batches(len(self.x), state.step, count)
        return np.array(state.factors(count), np.float32), None if rows is None else rows.astype(np.int32)

    def _upload(self, table: tuple[np.ndarray, np.ndarray | None]) -> tuple[Array, Array | None]:
        factors, rows = table
        return self.backend.asarray(factors), None if rows is None else self.backend.asarray(rows)


class Fused(Engine):
    """Training steps as kernels of our own, in float32, for networks that fit. It refuses by name what does not."""

    name = "fused"
    products = 3  # of TF32 for one of float32, where the tensor cores are used

    def prepare(self, state: TrainState, x: Array, y: Array) -> FusedSession:
        b = state.model.backend
        candidates = fused_plans(state, x, y, products=self.products)
        if b.name == "sim":
            from nnlab.engines.fused_sim import SimSession

            return SimSession(state, x, y, candidates[0])
        from nnlab.engines.fused_cupy import first_that_runs

        return FusedSession(state, x, y, first_that_runs(candidates, state, x, y))


class FusedTF32(Fused):
    """The same with products in TF32, which keeps 10 bits of each factor: faster, where pictures are what counts."""

    name = "fused-tf32"
    products = 1


def fused_plans(state: TrainState, x: Array, y: Array, *, products: int) -> list[Plan]:
    """The plans that fit this run and its card, best first, at least one. Raises EngineCannot with the reason."""
    model, b = state.model, state.model.backend
    if b.is_host:
        raise EngineCannot(
            "the fused engine runs on a GPU, and this model lives on the host: use engine='eager' or 'tiled', "
            "or put the model on nnlab.gpu()"
        )
    if b.dtype != np.float32:
        raise EngineCannot(f"the fused engine computes in float32, not {b.dtype}: use engine='graph' or 'eager'")
    network = chain(model)
    run = run_of(state, x)
    if max(x.size, y.size) >= 2**31:
        raise EngineCannot(f"the fused engine counts in 32 bits; x and y hold {x.size:,} and {y.size:,} numbers")
    card = _card(b.name)
    if card.capability < OLDEST:
        old, new = (".".join(map(str, capability)) for capability in (card.capability, OLDEST))
        raise EngineCannot(f"the fused engine needs compute capability {new}, {b.home} has {old}: use engine='graph'")
    tile = tile_plan(network, run, card, products=products)
    wide = gemm_plan(network, run, card, products=products)
    memory = b.memory()
    free = memory.limit - memory.used
    kernels: list[list[Plan]] = [
        list(plans(network, run, card)) if products == 3 else [],  # the loops compute in float32 proper
        list(grid_plans(network, run, card, products=products)),
        [wide] if wide and wide.memory_bytes <= free else [],
    ]
    kernels = sorted((found for found in kernels if found), key=lambda found: found[0].step_seconds)
    if tile:  # wherever it fits: on an H200 ahead of the others from its least rows on, whatever they estimate
        kernels.insert(0, [tile])
    if kernels:
        return [plan for found in kernels for plan in found]
    if wide:
        raise EngineCannot(
            f"the fused engine keeps {wide.memory_bytes / 2**20:,.0f} MiB of activations and sums for {network} on "
            f"{run.rows:,} rows, and {b.home} has {free / 2**20:,.0f} MiB free: take batches of fewer rows"
        )
    raise EngineCannot(
        f"the fused engine does not fit {network} on {run.rows:,} rows: beyond a few blocks' shared memory and "
        f"{MOST_ROWS:,} rows it takes {LIMITS}; use engine='graph'"
    )


def _card(backend: str) -> Card:
    if backend == "sim":
        return Card((9, 0), 232_448)  # the kernels were measured on an H200
    from nnlab.backends.cupy_module import capability_and_shared_bytes

    return Card(*capability_and_shared_bytes())
