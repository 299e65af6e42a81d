"""What is measured: a way to train a job, made ready."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from benchmarks.steps.jobs import Job


class Contestant(ABC):
    """One framework's way to run a job's steps. A subclass is made ready (compiled, captured) when it is made."""

    def __init__(self, job: Job) -> None:
        self.job = job

    @abstractmethod
    def train(self, steps: int) -> None:
        """Take `steps` training steps; may return before the device is done."""

    @abstractmethod
    def wait(self) -> None:
        """Until the device is done."""

    @abstractmethod
    def weights(self) -> list[np.ndarray]:
        """The trained arrays on the host, layer by layer, weight (inputs, outputs) then bias."""

    def forward(self, passes: int) -> None:
        """Predict `passes` times. What has no way of its own for it raises NotImplementedError."""
        raise NotImplementedError


Field = dict[str, Callable[[Job], Contestant]]  # the contestants of one framework by name
