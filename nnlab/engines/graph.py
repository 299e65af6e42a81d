"""The graph engine: one training step is captured once, then replayed at the cost of a single launch.

What changes from step to step (rates, batch rows, the step's number) waits on the device: a table of the next steps
goes up in one copy, and a counter, raised inside the graph, picks the row. So every replay is the same launches.
"""

from __future__ import annotations

import numpy as np

from nnlab.backends import Array
from nnlab.engines.base import Engine, Session
from nnlab.errors import EngineCannot
from nnlab.optim import TrainState

CHUNK = 256  # steps whose rates and rows go up in one copy, and after which Ctrl-C is looked for


class GraphSession(Session):
    """Buffers that never move, and the graph that works on them."""

    def __init__(self, state: TrainState, x: Array, y: Array) -> None:
        self.state, self.x, self.y = state, x, y
        self.backend = b = state.model.backend
        xp, factors = b.xp, len(state.optimizer.factors(1, 1.0))
        self.factors = xp.zeros((CHUNK, factors), dtype=b.dtype)
        self.rows = None if state.batch_size is None else xp.zeros((CHUNK, state.batch_size), dtype="int64")
        self.losses = xp.zeros(CHUNK, dtype=b.dtype)
        self.place = xp.zeros(1, dtype="int64")  # which row of the tables the next replay takes
        self._warm_up()
        with b.capture() as self.graph:
            self._step()

    def advance(self, n: int) -> Array:
        state, b = self.state, self.backend
        taken = []
        while n > 0 and not self.stop():
            count = min(n, CHUNK)
            self._load(count)
            for _ in range(count):
                self.graph.replay()
            state.step += count
            state.optimizer.step += count
            taken.append(self.losses[:count].copy())
            b.synchronize()  # a chunk at a time, so that a Ctrl-C is noticed before thousands of steps are queued
            n -= count
        return b.xp.concatenate(taken) if taken else self.losses[:0]

    def evaluate(self) -> Array:
        loss, _ = self.state.loss(self.state.model(self.x), self.y)
        return loss

    def _load(self, count: int) -> None:
        """Send up what the next `count` steps need."""
        state, b = self.state, self.backend
        table = [
            state.optimizer.factors(state.optimizer.step + 1 + i, state.schedule(state.step + i)) for i in range(count)
        ]
        self.factors[:count] = b.asarray(np.array(table))
        rows = state.batches(len(self.x), state.step, count)
        if rows is not None and self.rows is not None:
            self.rows[:count] = b.asarray(rows)
        self.place.fill(0)

    def _step(self) -> None:
        """One training step, in operations that depend on nothing but the buffers."""
        state, xp = self.state, self.backend.xp
        x, y = self.x, self.y
        if self.rows is not None:
            rows = xp.take(self.rows, self.place, axis=0)[0]
            x, y = xp.take(x, rows, axis=0), xp.take(y, rows, axis=0)
        loss, gradient = state.loss(state.model(x), y)
        self.losses[self.place] = loss
        state.model.backward(gradient, to_input=False)
        factors = xp.take(self.factors, self.place, axis=0)[0]
        state.optimizer.apply(state.model.parameters, state.model.gradients, list(factors))
        self.place += 1

    def _warm_up(self) -> None:
        """Run the step once for its compilations, which cannot be captured, and put everything back."""
        arrays = self.state.arrays
        kept = {name: value.copy() for name, value in arrays.items()}
        self._load(1)
        self._step()
        for name, value in arrays.items():
            value[...] = kept[name]


class CudaGraph(Engine):
    """One captured step, replayed. Takes every network, loss and optimiser that eager takes, on a device."""

    name = "graph"

    def prepare(self, state: TrainState, x: Array, y: Array) -> GraphSession:
        if state.model.backend.is_host:
            raise EngineCannot(
                "the graph engine replays launches, and the host has none: use engine='eager', "
                "or put the model on nnlab.gpu()"
            )
        return GraphSession(state, x, y)
