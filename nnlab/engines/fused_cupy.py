"""The fused engine on a real card."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nnlab.backends import Array
from nnlab.backends.cupy_module import ClusterKernel, addresses
from nnlab.engines.fused import Loop
from nnlab.engines.fused_cupy_gemm import CupyProducts
from nnlab.engines.fused_gemm import GemmPlan
from nnlab.engines.fused_plan import Plan
from nnlab.engines.fused_tile import TilePlan
from nnlab.errors import EngineCannot
from nnlab.optim import TrainState


class CupyLoop(Loop):
    """A compiled kernel and the arrays it works on: those of the model and the optimiser themselves."""

    def __init__(self, plan: Plan, state: TrainState, x: Array, y: Array) -> None:
        self.plan = plan
        xp = state.model.backend.xp
        self.kernel = ClusterKernel(
            plan.source, plan.kernel, cluster=plan.cluster, threads=plan.threads, shared_bytes=plan.shared_bytes
        )
        self.arrays = in_kernel_order(state)
        self.addresses = addresses(self.arrays)
        self.no_rows = xp.zeros(1, np.int32)
        x, y = xp.ascontiguousarray(x), xp.ascontiguousarray(y)
        self.data: tuple[Any, ...] = (x, y)
        if plan.kernel == "loop_weights":
            # A column of ones behind the inputs carries the first bias; a row of zeros fills up short batches.
            padded = xp.zeros((len(x) + 1, plan.input_stride), np.float32)
            padded[: len(x), : x.shape[1]] = x
            padded[: len(x), x.shape[1]] = plan.chain.biases[0]
            self.data = (xp.empty(max(1, plan.memory_floats), np.float32), padded, y, len(x))

    def launch(self, losses: Array, factors: Array, rows: Array | None) -> None:
        table = self.no_rows if rows is None else rows
        self.kernel(self.addresses, *self.data, table, factors, losses, len(losses))


class CupyTiles(Loop):
    """The two kernels of tile.cu, queued for each step; the host is done with a step long before the card is."""

    def __init__(self, plan: TilePlan, state: TrainState, x: Array, y: Array) -> None:
        self.plan = plan
        xp = state.model.backend.xp
        source = plan.source
        self.gradients = ClusterKernel(
            source,
            "tile_gradients",
            blocks=plan.cluster,
            threads=plan.threads,
            shared_bytes=plan.shared_bytes,
            cluster=1,
        )
        self.update = ClusterKernel(
            source, "tile_update", blocks=-(-plan.sums // plan.threads), threads=plan.threads, shared_bytes=0, cluster=1
        )
        self.arrays = in_kernel_order(state)
        self.addresses = addresses(self.arrays)
        self.x, self.y = xp.ascontiguousarray(x), xp.ascontiguousarray(y)
        self.sums = xp.empty((plan.cluster, plan.sums), np.float32)
        self.no_rows = xp.zeros(1, np.int32)

    def launch(self, losses: Array, factors: Array, rows: Array | None) -> None:
        for step in range(len(losses)):
            batch = self.no_rows if rows is None else rows[step]
            self.gradients(self.addresses, self.x, self.y, batch, self.sums)
            self.update(self.addresses, self.sums, self.plan.cluster, factors[step], losses[step])


def ready(plan: Plan, state: TrainState, x: Array, y: Array) -> Loop:
    """A plan compiled for this card."""
    if isinstance(plan, GemmPlan):
        return CupyProducts(plan, state, x, y)
    return CupyTiles(plan, state, x, y) if isinstance(plan, TilePlan) else CupyLoop(plan, state, x, y)


def first_that_runs(candidates: Sequence[Plan], state: TrainState, x: Array, y: Array) -> Loop:
    """The first plan that the card takes; a launch of no steps tells. Raises EngineCannot with the card's own words."""
    b = state.model.backend
    nothing = b.xp.empty(0, np.float32)
    refused = ""
    for plan in candidates:
        try:
            loop = ready(plan, state, x, y)
            loop.launch(nothing, nothing, None)
        except b.xp.cuda.driver.CUDADriverError as error:  # such as a cluster that this card has no room for
            refused = refused or f"{plan}: {error}"
            continue
        b.synchronize()
        return loop
    raise EngineCannot(f"{b.home} does not start the fused engine's kernel ({refused}): use engine='graph'")


def in_kernel_order(state: TrainState) -> list[Array]:
    """Each of the model's tensors, followed by what the optimiser remembers of it."""
    ordered = []
    for name, parameter in state.model.parameters.items():
        ordered.append(parameter)
        ordered += [state.optimizer.arrays[f"{memory}.{name}"] for memory in state.optimizer.memories]
    return ordered
