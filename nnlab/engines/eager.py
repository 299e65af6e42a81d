"""The plain engine: one operation after another, as lessons write it. It takes every network, on every backend."""

from __future__ import annotations

from nnlab.backends import Array
from nnlab.engines.base import Engine, Session, batches
from nnlab.optim import TrainState


class EagerSession(Session):
    """Forward, loss, backward, update: a Python loop over the steps."""

    def __init__(self, state: TrainState, x: Array, y: Array) -> None:
        self.state, self.x, self.y = state, x, y
        self.backend = state.model.backend

    def advance(self, n: int) -> Array:
        state, xp = self.state, self.backend.xp
        losses = xp.empty(n, dtype=self.backend.dtype)
        x, y = self.x, self.y
        for i, rows in enumerate(batches(state, len(x), n)):
            if self.stop():
                return losses[:i]
            if rows is not None:
                x, y = xp.take(self.x, rows, axis=0), xp.take(self.y, rows, axis=0)
            losses[i], gradient = state.loss(state.model(x), y)
            state.model.backward(gradient, to_input=False)
            state.optimizer.update(state.model.parameters, state.model.gradients, state.rate(state.step))
            state.step += 1
        return losses


class Eager(Engine):
    """One operation after another; the reference that the other engines are compared with."""

    name = "eager"

    def prepare(self, state: TrainState, x: Array, y: Array) -> EagerSession:
        return EagerSession(state, x, y)
