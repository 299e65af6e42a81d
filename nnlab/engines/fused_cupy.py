"""The fused engine on a real card."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nnlab.backends import Array, backend_of
from nnlab.backends.cupy_module import ClusterKernel, addresses
from nnlab.engines.fused import Loop
from nnlab.engines.fused_cupy_gemm import CupyProducts
from nnlab.engines.fused_gemm import GemmPlan
from nnlab.engines.fused_grid import GridPlan
from nnlab.engines.fused_plan import Plan
from nnlab.engines.fused_tile import TilePlan
from nnlab.errors import EngineCannot
from nnlab.optim import TrainState


class CupyLoop(Loop):
    """A compiled kernel and the arrays it works on: those of the model and the optimiser themselves."""

    def __init__(self, plan: Plan, state: TrainState, x: Array, y: Array) -> None:
        self.plan = plan
        self.kernel = _kernel(plan)
        self.arrays = in_kernel_order(state)
        self.addresses = addresses(self.arrays)
        self.data = _data(plan, x, y)
        self.no_rows = state.model.backend.xp.zeros(1, np.int32)

    def launch(self, losses: Array, factors: Array, rows: Array | None) -> None:
        table = self.no_rows if rows is None else rows
        self.kernel(self.addresses, *self.data, table, factors, losses, len(losses))


def _kernel(plan: Plan) -> ClusterKernel:
    """One cluster, or the whole card, whose blocks wait for one another."""
    sizes: dict[str, Any] = {"cluster": plan.cluster, "threads": plan.threads, "shared_bytes": plan.shared_bytes}
    if isinstance(plan, GridPlan | TilePlan):
        return ClusterKernel(plan.source, plan.kernel, **sizes, blocks=plan.blocks, together=True)
    return ClusterKernel(plan.source, plan.kernel, **sizes)


def _data(plan: Plan, x: Array, y: Array) -> tuple[Any, ...]:
    """The kernel's arguments between the addresses and the tables: memory of its own, where it needs some, x and y."""
    xp = backend_of(x).xp
    y = xp.ascontiguousarray(y)
    if isinstance(plan, GridPlan | TilePlan):  # for what blocks tell one another, and the counts of their barrier
        memory, counts = xp.zeros(plan.workspace, np.float32), xp.zeros(2, np.uint32)
        if isinstance(plan, TilePlan):
            return memory, counts, xp.ascontiguousarray(x), y
        padded = padded_input(plan, x)
        if plan.products == 1:
            round_to_tf32(padded)
        return memory, counts, padded, y, len(y)
    if plan.kernel == "loop_weights":
        return xp.empty(max(1, plan.memory_floats), np.float32), padded_input(plan, x), y, len(y)
    return xp.ascontiguousarray(x), y


def ready(plan: Plan, state: TrainState, x: Array, y: Array) -> Loop:
    """A plan compiled for this card."""
    return CupyProducts(plan, state, x, y) if isinstance(plan, GemmPlan) else CupyLoop(plan, state, x, y)


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


def padded_input(plan: Plan, x: Array) -> Array:
    """x in rows of plan.input_stride: a column of ones carries the first bias, rows of zeros fill up batches."""
    xp = backend_of(x).xp
    padded = xp.zeros((len(x) + plan.spare_rows, plan.input_stride), np.float32)
    padded[: len(x), : x.shape[1]] = x
    if plan.chain.biases[0]:
        padded[: len(x), x.shape[1]] = 1.0
    return padded


def round_to_tf32(values: Array) -> None:
    """Round finite numbers, in place, to what the tensor cores keep of them: 10 of the mantissa's 23 bits."""
    bits = values.view(np.uint32)
    bits += np.uint32(0x1000)
    bits &= np.uint32(0xFFFFE000)


def in_kernel_order(state: TrainState) -> list[Array]:
    """Each of the model's tensors, followed by what the optimiser remembers of it."""
    ordered = []
    for name, parameter in state.model.parameters.items():
        ordered.append(parameter)
        ordered += [state.optimizer.arrays[f"{memory}.{name}"] for memory in state.optimizer.memories]
    return ordered
