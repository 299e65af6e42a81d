"""Everything that decides how a training run goes on from where it stands."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nnlab.backends import Array
from nnlab.nn.losses import Loss
from nnlab.nn.sequential import Sequential
from nnlab.optim.optimizers import Optimizer
from nnlab.optim.schedules import Schedule


@dataclass
class TrainState:
    """A training run between two steps: with the data, it determines every later step, bit for bit.

    step: updates done so far. steps: the planned total. schedule: rate by global step. batch_size: rows a step, or
    None for all. batch_seed: from it the rows of every step follow. log: see History. extra: JSON-able notes that
    travel along, such as the size and value range of a picture, or "engine_settings", of an engine that has some.
    """

    model: Sequential
    loss: Loss
    optimizer: Optimizer
    schedule: Schedule
    steps: int
    log_every: int
    step: int = 0
    batch_size: int | None = None
    batch_seed: int | None = None
    engine: str = "eager"
    log: dict[str, list[Any]] = field(default_factory=lambda: {"step": [], "loss": [], "rate": [], "seconds": []})
    extra: dict[str, Any] = field(default_factory=dict)

    def rate(self, step: int) -> float:
        """The schedule's rate of a step. Raises ValueError where it is negative or not finite."""
        rate = float(self.schedule(step))
        if not (rate >= 0 and math.isfinite(rate)):
            raise ValueError(f"the schedule's rate of step {step} must be a finite number from 0, not {rate}")
        return rate

    def factors(self, count: int) -> list[tuple[float, ...]]:
        """What the optimiser multiplies with in each of the next `count` steps. Raises ValueError for a bad rate."""
        first, update = self.step, self.optimizer.step + 1
        return [self.optimizer.factors(update + i, self.rate(first + i)) for i in range(count)]

    def batches(self, rows: int, first: int, count: int) -> np.ndarray | None:
        """The row numbers (count, batch_size) of `count` steps from step `first`, or None without batches.

        Each epoch is one shuffle of all rows, drawn from the seed and the epoch's number alone; the rows left over
        by the last batch of an epoch sit that epoch out.
        """
        if self.batch_size is None or self.batch_seed is None:
            return None
        per_epoch = rows // self.batch_size
        chosen = np.empty((count, self.batch_size), np.int64)
        order, shuffled = np.empty(0, np.int64), -1
        for i in range(count):
            epoch, place = divmod(first + i, per_epoch)
            if epoch != shuffled:
                order, shuffled = np.random.default_rng([self.batch_seed, epoch]).permutation(rows), epoch
            chosen[i] = order[place * self.batch_size : (place + 1) * self.batch_size]
        return chosen

    @property
    def arrays(self) -> dict[str, Array]:
        """All arrays that training changes: the parameters, and the optimiser's memories as "optimizer.NAME"."""
        return self.model.parameters | {f"optimizer.{name}": value for name, value in self.optimizer.arrays.items()}
