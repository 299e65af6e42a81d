"""The fused engine on a simulated GPU: eager's arithmetic on the host, booked as the launches it would cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from nnlab.backends import Array, NumpyBackend
from nnlab.backends.sim.backend import SimBackend
from nnlab.backends.sim.device import load_device
from nnlab.engines.eager import EagerSession
from nnlab.engines.fused import FusedSession, Loop
from nnlab.engines.fused_gemm import GemmPlan
from nnlab.engines.fused_plan import Plan
from nnlab.nn.networks import from_config
from nnlab.optim import TrainState, optimizer_from_config

RATE = "product_rate_float32"


class SimLoop(Loop):
    """A twin of the run lives on the host; each launch brings it up to date, runs its steps and writes them back.

    taken: steps of the last slice; fewer than it has, where `stop` said so before one of them.
    """

    stop: Callable[[], bool] = staticmethod(lambda: False)

    def __init__(self, plan: Plan, state: TrainState, x: Array, y: Array) -> None:
        self.plan, self.state, self.x, self.y = plan, state, x, y
        self.backend = cast(SimBackend, state.model.backend)
        of_launch = plan.kernel_seconds if isinstance(plan, GemmPlan) else plan.step_seconds
        self.seconds = of_launch * times_slower(self.backend)  # of each step's launch, or its part of one
        self.twin, self.taken = host_twin(state), 0

    def launch(self, losses: Array, factors: Array, rows: Array | None) -> None:
        self.taken = 0
        self._steps(self.plan.kernel, losses, factors, rows)

    def _steps(self, kernel: str, losses: Array, factors: Array, rows: Array | None) -> None:
        """Book one launch that takes the slice's next len(losses) steps."""
        arrays = self.state.arrays
        tables = (factors,) if rows is None else (factors, rows)

        def run(losses: np.ndarray, x: np.ndarray, y: np.ndarray, *rest: np.ndarray) -> None:
            mine, done = self.twin.arrays, self.taken
            theirs = dict(zip(arrays, rest, strict=False))
            for name, value in theirs.items():
                mine[name][...] = value
            self.twin.step, self.twin.optimizer.step = self.state.step + done, self.state.optimizer.step + done
            self.twin.schedule = self.state.schedule
            session = EagerSession(self.twin, x, y)
            session.stop = self.stop
            seen = session.advance(len(losses))
            losses[: len(seen)] = seen
            self.taken += len(seen)
            for name, value in theirs.items():
                value[...] = mine[name]

        seconds = len(losses) * self.seconds
        self.backend.launch(kernel, (losses, self.x, self.y, *arrays.values(), *tables), run, seconds=seconds)


class SimProducts(SimLoop):
    """All launches of a step, and one for the whole slice; the last of a step carries the arithmetic here."""

    plan: GemmPlan

    def launch(self, losses: Array, factors: Array, rows: Array | None) -> None:
        self.taken = 0
        self._book("load", losses)
        *before, last = self.plan.kernels
        for step in range(len(losses)):
            now = slice(step, step + 1)
            for kernel in before:
                self._book(kernel, losses[now])
            self._steps(last, losses[now], factors[now], None if rows is None else rows[now])
            if self.taken == step:
                return

    def _book(self, kernel: str, losses: Array) -> None:
        self.backend.launch(kernel, (losses,), lambda losses: None, seconds=self.seconds)


class SimSession(FusedSession):
    """Slices as a card has them, but Ctrl-C need not wait for their end, which the host may take long to reach.

    A launch that is stopped early has been booked whole: on a card nothing stops it.
    """

    loop: SimLoop

    def __init__(self, state: TrainState, x: Array, y: Array, plan: Plan) -> None:
        kind = SimProducts if isinstance(plan, GemmPlan) else SimLoop
        super().__init__(state, x, y, kind(plan, state, x, y))

    def _take(self, losses: Array, table: tuple[np.ndarray, np.ndarray | None]) -> int:
        self.loop.stop = self.stop
        super()._take(losses, table)
        return self.loop.taken


def times_slower(backend: SimBackend) -> float:
    """Than the H200, for which plans are timed: by how fast the devices' files say that float32 is multiplied."""
    return load_device("h200").kernel[RATE] / backend.gpu.device.kernel[RATE]


def host_twin(state: TrainState) -> TrainState:
    """A run like this one, with arrays of its own on the host, in float32; all zero until a launch fills them."""
    twin = TrainState(
        model=from_config(state.model.config, backend=NumpyBackend(dtype="float32")),
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
