"""The graph engine's kernels on a simulated GPU: booked as a card would run them, with eager's arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from nnlab.backends.sim.backend import SimBackend
from nnlab.engines.eager import EagerSession
from nnlab.engines.fused_sim import host_twin, times_slower
from nnlab.engines.graph_plan import StepPlan

if TYPE_CHECKING:
    from nnlab.engines.graph import GraphSession


class SimStep:
    """The last kernel of a step carries all its arithmetic, done by a twin of the run on the host; the rest only cost.

    A call queues one step.
    """

    def __init__(self, plan: StepPlan, session: GraphSession) -> None:
        self.plan, self.session = plan, session
        self.twin = host_twin(session.state)
        self.slower = times_slower(cast(SimBackend, session.backend))

    def __call__(self) -> None:
        session = self.session
        backend = cast(SimBackend, session.backend)
        *before, last = self.plan.launches
        for launch in before:
            backend.launch(launch.name, (session.place,), lambda place: None, seconds=launch.seconds * self.slower)
        changed = session.state.arrays.values()
        arrays = (session.place, session.losses, session.x, session.y, *changed)
        backend.launch(last.name, arrays, self._step, seconds=last.seconds * self.slower)

    def _step(self, place: np.ndarray, losses: np.ndarray, x: np.ndarray, y: np.ndarray, *changed: np.ndarray) -> None:
        """One step of the twin, from where the simulated arrays stand to where they shall stand."""
        state, twin, done = self.session.state, self.twin, int(place[0])
        mine = [twin.arrays[name] for name in state.arrays]
        for ours, theirs in zip(mine, changed, strict=True):
            ours[...] = theirs
        twin.step, twin.optimizer.step = state.step + done, state.optimizer.step + done
        twin.schedule = state.schedule
        losses[done] = EagerSession(twin, x, y).advance(1)[0]
        for ours, theirs in zip(mine, changed, strict=True):
            theirs[...] = ours
        place[0] = done + 1
