"""The fused engine on a simulated GPU: eager's arithmetic on the host, booked as the launches it would cost."""

from __future__ import annotations

from typing import cast

import numpy as np

from nnlab.backends import Array, NumpyBackend
from nnlab.backends.sim.backend import SimBackend
from nnlab.engines.eager import EagerSession
from nnlab.engines.fused import Loop
from nnlab.engines.fused_gemm import GemmPlan
from nnlab.engines.fused_plan import Plan
from nnlab.optim import TrainState, optimizer_from_config


class SimLoop(Loop):
    """A twin of the run lives on the host; each launch brings it up to date, runs its steps and writes them back."""

    def __init__(self, plan: Plan, state: TrainState, x: Array, y: Array) -> None:
        self.plan, self.state, self.x, self.y = plan, state, x, y
        self.seconds = (
            plan.kernel_seconds if isinstance(plan, GemmPlan) else plan.step_seconds
        )  # of the launch with the arithmetic
        self.backend = cast(SimBackend, state.model.backend)
        self.twin = host_twin(state)

    def launch(self, losses: Array, factors: Array, rows: Array | None) -> None:
        self._steps(self.plan.kernel, 0, losses, factors, rows)

    def _steps(self, kernel: str, done: int, losses: Array, factors: Array, rows: Array | None) -> None:
        """Book one launch that takes len(losses) steps, `done` steps into the slice."""
        arrays = self.state.arrays
        tables = (factors,) if rows is None else (factors, rows)

        def run(losses: np.ndarray, x: np.ndarray, y: np.ndarray, *rest: np.ndarray) -> None:
            mine = self.twin.arrays
            theirs = dict(zip(arrays, rest, strict=False))
            for name, value in theirs.items():
                mine[name][...] = value
            self.twin.step, self.twin.optimizer.step = self.state.step + done, self.state.optimizer.step + done
            losses[...] = EagerSession(self.twin, x, y).advance(len(losses))
            for name, value in theirs.items():
                value[...] = mine[name]

        seconds = len(losses) * self.seconds
        self.backend.launch(kernel, (losses, self.x, self.y, *arrays.values(), *tables), run, seconds=seconds)


class SimProducts(SimLoop):
    """All launches of a step, and one for the whole slice; the last of a step carries the arithmetic here."""

    plan: GemmPlan

    def launch(self, losses: Array, factors: Array, rows: Array | None) -> None:
        self._book("load", losses)
        *before, last = self.plan.kernels
        for step in range(len(losses)):
            now = slice(step, step + 1)
            for kernel in before:
                self._book(kernel, losses[now])
            self._steps(last, step, losses[now], factors[now], None if rows is None else rows[now])

    def _book(self, kernel: str, losses: Array) -> None:
        self.backend.launch(kernel, (losses,), lambda losses: None, seconds=self.plan.kernel_seconds)


def ready(plan: Plan, state: TrainState, x: Array, y: Array) -> SimLoop:
    """The plan as this device has it."""
    return (SimProducts if isinstance(plan, GemmPlan) else SimLoop)(plan, state, x, y)


def host_twin(state: TrainState) -> TrainState:
    """A run like this one, with arrays of its own on the host, in float32."""
    twin = TrainState(
        model=state.model.to(NumpyBackend(dtype="float32")),
        loss=state.loss,
        optimizer=optimizer_from_config(state.optimizer.config),
        schedule=state.schedule,
        steps=state.steps,
        log_every=state.log_every,
        batch_size=state.batch_size,
        batch_seed=state.batch_seed,
    )
    twin.optimizer.prepare(twin.model.parameters)
    return twin
