"""The fused engine on a simulated GPU: eager's arithmetic on the host, booked as the launches it would cost."""

from __future__ import annotations

from typing import cast

import numpy as np

from nnlab.backends import Array, NumpyBackend
from nnlab.backends.sim.backend import SimBackend
from nnlab.engines.eager import EagerSession
from nnlab.engines.fused import Loop
from nnlab.engines.fused_plan import Plan
from nnlab.optim import TrainState, optimizer_from_config


class SimLoop(Loop):
    """A twin of the run lives on the host; each launch brings it up to date, runs its steps and writes them back."""

    def __init__(self, plan: Plan, state: TrainState, x: Array, y: Array) -> None:
        self.plan, self.state, self.x, self.y = plan, state, x, y
        self.backend = cast(SimBackend, state.model.backend)
        self.twin = TrainState(
            model=state.model.to(NumpyBackend(dtype="float32")),
            loss=state.loss,
            optimizer=optimizer_from_config(state.optimizer.config),
            schedule=state.schedule,
            steps=state.steps,
            log_every=state.log_every,
            batch_size=state.batch_size,
            batch_seed=state.batch_seed,
        )
        self.twin.optimizer.prepare(self.twin.model.parameters)

    def launch(self, losses: Array, factors: Array, rows: Array | None) -> None:
        arrays = self.state.arrays
        tables = (factors,) if rows is None else (factors, rows)

        def run(losses: np.ndarray, x: np.ndarray, y: np.ndarray, *rest: np.ndarray) -> None:
            mine = self.twin.arrays
            theirs = dict(zip(arrays, rest, strict=False))
            for name, value in theirs.items():
                mine[name][...] = value
            self.twin.step, self.twin.optimizer.step = self.state.step, self.state.optimizer.step
            losses[...] = EagerSession(self.twin, x, y).advance(len(losses))
            for name, value in theirs.items():
                value[...] = mine[name]

        seconds = len(losses) * self.plan.step_seconds
        self.backend.launch(self.plan.kernel, (losses, self.x, self.y, *arrays.values(), *tables), run, seconds=seconds)
