"""The graph engine's kernels on a real card."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nnlab.backends import Array
from nnlab.backends.cupy_module import ClusterKernel, addresses
from nnlab.engines.fused_cupy import in_kernel_order
from nnlab.engines.graph_cuts import THREADS
from nnlab.engines.graph_plan import Launch, StepPlan

if TYPE_CHECKING:
    from nnlab.engines.graph import GraphSession

PACK = 4  # floats that the kernels read at once


class CupyStep:
    """The kernels of a plan, on the arrays of the model and the optimiser themselves. A call queues one step."""

    def __init__(self, plan: StepPlan, session: GraphSession) -> None:
        state, xp = session.state, session.backend.xp
        self.parameters = state.model.parameters
        self.addresses = addresses(in_kernel_order(state))
        self.work = xp.zeros(plan.work_floats, np.float32)
        self.x, self.y = _in_packs(session.x, xp), xp.ascontiguousarray(session.y)
        self.rows = xp.zeros(1, np.int32) if session.rows is None else session.rows
        self.factors, self.place, self.losses = session.factors, session.place, session.losses
        self.linear = [layer for layer in state.model.layers if layer.parameters]
        source, templates = plan.source, tuple(launch.name for launch in plan.launches if launch.is_template)
        self.kernels = [(_kernel(source, templates, launch), self._arguments(launch)) for launch in plan.launches]

    def __call__(self) -> None:
        for kernel, arguments in self.kernels:
            kernel(*arguments)

    def _arguments(self, launch: Launch) -> tuple[Any, ...]:
        """As the kernel in step.cu wants them."""
        parameters = self.linear[launch.layer].parameters
        weight = parameters["weight"]
        if launch.kernel == "forward":
            bias = parameters.get("bias", weight)  # one that is not there is not read
            return weight, bias, self.x, self.y, self.rows, self.place, self.work
        if launch.kernel == "backward":
            return weight, self.work
        if launch.kernel == "gradients":
            return self.addresses, self.x, self.rows, self.factors, self.place, self.losses, self.work
        return self.addresses, self.factors, self.place, self.losses, self.work


def _kernel(source: str, templates: tuple[str, ...], launch: Launch) -> ClusterKernel:
    return ClusterKernel(
        source,
        launch.name,
        cluster=1,
        templates=templates,
        blocks=launch.blocks,
        threads=THREADS,
        shared_bytes=launch.shared_bytes,
    )


def _in_packs(x: Array, xp: Any) -> Array:
    """x, where its rows begin at whole packs, else a copy with columns of zeros behind."""
    columns = -(-x.shape[1] // PACK) * PACK
    if columns == x.shape[1] and x.flags.c_contiguous and x.data.ptr % (PACK * x.itemsize) == 0:
        return x
    padded = xp.zeros((len(x), columns), x.dtype)
    padded[:, : x.shape[1]] = x
    return padded
