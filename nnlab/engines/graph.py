"""The graph engine: one training step is captured once, then replayed at the cost of a single launch.

What changes from step to step (rates, batch rows, the step's number) waits on the device: a table of the next steps
goes up in one copy, and a counter, raised inside the graph, picks the row. So every replay is the same launches.

What is captured is a few kernels of our own where the network is a chain of linear layers with the activations, losses
and optimisers that `kernels/step.cu` knows, in float32: two launches a layer. Everything else is captured as the
operations that the eager engine would ask for.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nnlab.backends import Array
from nnlab.engines.base import Compiled, Engine, Session
from nnlab.engines.graph_plan import StepPlan, step_plan
from nnlab.errors import CaptureError, EngineCannot, ShapeError
from nnlab.optim import Optimizer, TrainState

CHUNK = 256  # steps, at most, whose rates and rows go up in one copy, and after which Ctrl-C is looked for
CHUNK_SECONDS = 0.1  # that they may take, where the plan tells


class GraphSession(Session):
    """Buffers that never move, and the graph that works on them. plan: of the kernels, or None for eager's operations.

    place: which row of the tables the next replay takes; the kernels keep a copy of it in the second number.
    """

    def __init__(self, state: TrainState, x: Array, y: Array, plan: StepPlan | None) -> None:
        self.state, self.x, self.y = state, x, y
        self.backend = b = state.model.backend
        self.compiled = Compiled(state)
        xp, factors = b.xp, len(state.optimizer.factors(1, 1.0))
        seconds = 0.0 if plan is None else sum(launch.seconds for launch in plan.launches)
        self.chunk = max(1, min(CHUNK, int(CHUNK_SECONDS / seconds))) if seconds else CHUNK
        self.factors = xp.zeros((self.chunk, factors), dtype=b.dtype)
        self.rows = None if state.batch_size is None else xp.zeros((self.chunk, state.batch_size), dtype="int32")
        self.losses = xp.zeros(self.chunk, dtype=b.dtype)
        self.place = xp.zeros(2, dtype="int32")
        _check_data(state, x, y)
        self.step = self._operations if plan is None else self._kernels(plan)  # kept: its buffers are the graph's
        self._warm_up()
        with b.capture() as self.graph:
            self.step()

    def advance(self, n: int) -> Array:
        self.compiled.check(self.state)
        state, b = self.state, self.backend
        taken = []
        table = self._table(min(n, self.chunk))
        while n > 0 and not self.stop():
            count = min(n, self.chunk)
            self._load(table)
            count = self._replay(count)
            state.step += count
            state.optimizer.step += count
            taken.append(self.losses[:count].copy())
            n -= count
            table = self._table(min(n, self.chunk))  # while the device works
            b.synchronize()  # a chunk at a time, so that a Ctrl-C is noticed before thousands of steps are queued
        return b.xp.concatenate(taken) if taken else self.losses[:0]

    def _replay(self, count: int) -> int:
        """Queue so many steps, or fewer where `stop()` says so; a simulated GPU takes each one at once."""
        for taken in range(count):
            if self.stop():
                return taken
            self.graph.replay()
        return count

    def _table(self, count: int) -> tuple[np.ndarray, np.ndarray | None]:
        """The factors and the rows of the next `count` steps."""
        state = self.state
        rows = state.batches(len(self.x), state.step, count)
        return np.array(state.factors(count)), None if rows is None else rows.astype(np.int32)

    def _load(self, table: tuple[np.ndarray, np.ndarray | None]) -> None:
        """Send up what the next steps need."""
        factors, rows = table
        self.factors[: len(factors)] = self.backend.asarray(factors)
        if rows is not None and self.rows is not None:
            self.rows[: len(rows)] = self.backend.asarray(rows)
        self.place.fill(0)

    def _kernels(self, plan: StepPlan) -> Callable[[], None]:
        if self.backend.name == "sim":
            from nnlab.engines.graph_sim import SimStep

            return SimStep(plan, self)
        from nnlab.engines.graph_cupy import CupyStep

        return CupyStep(plan, self)

    def _operations(self) -> None:
        """One training step, in operations that depend on nothing but the buffers."""
        state, xp = self.state, self.backend.xp
        x, y, place = self.x, self.y, self.place[:1]
        if self.rows is not None:
            rows = xp.take(self.rows, place, axis=0)[0]
            x, y = xp.take(x, rows, axis=0), xp.take(y, rows, axis=0)
        loss, gradient = state.loss(state.model(x), y)
        self.losses[place] = loss
        state.model.backward(gradient, to_input=False)
        factors = xp.take(self.factors, place, axis=0)[0]
        state.optimizer.apply(state.model.parameters, state.model.gradients, list(factors))
        place += 1

    def _warm_up(self) -> None:
        """Run the step once for its compilations, which cannot be captured, and put everything back."""
        arrays = self.state.arrays
        kept = {name: value.copy() for name, value in arrays.items()}
        try:
            self._load(self._table(1))
            self.step()
        finally:
            for name, value in arrays.items():
                value[...] = kept[name]


class CudaGraph(Engine):
    """One captured step, replayed, on a device.

    Takes every network, and every loss and optimiser that work on arrays alone: what they do in Python, such as
    counting or reading a value, happens once, at the capture, or cannot be captured.

    On a simulated GPU the arithmetic is eager's, booked as the kernels that a card would run.
    """

    name = "graph"

    def prepare(self, state: TrainState, x: Array, y: Array) -> GraphSession:
        if state.model.backend.is_host:
            raise EngineCannot(
                "the graph engine replays launches, and the host has none: use engine='eager', "
                "or put the model on nnlab.gpu()"
            )
        if type(state.optimizer).update is not Optimizer.update:
            raise EngineCannot(
                f"the graph engine asks an optimiser for `factors` and `apply`, and {type(state.optimizer).__name__} "
                "has an `update` of its own: use engine='eager'"
            )
        try:
            return GraphSession(state, x, y, step_plan(state, x))
        except CaptureError as error:
            raise EngineCannot(f"the step cannot be captured: {error}; or use engine='eager'") from error


def _check_data(state: TrainState, x: Array, y: Array) -> None:
    """Raise what the network and the loss raise for data that does not fit; a row of it tells."""
    if len(x) != len(y):
        raise ShapeError(f"x has {len(x)} rows, y has {len(y)}")
    state.loss(state.model(x[:1]), y[:1])
