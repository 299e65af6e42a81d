"""nnlab's own engines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import nnlab
from benchmarks.steps.contestant import Contestant, Field
from benchmarks.steps.jobs import Job
from nnlab import nn
from nnlab.backends import Backend
from nnlab.engines import engine
from nnlab.nn.losses import LOSSES
from nnlab.optim import SGD, Adam, TrainState, constant


def network(job: Job, backend: Backend) -> nn.Sequential:
    """The job's network with its first weights."""
    layers: list[Any] = []
    for start, name in zip(job.start(), job.activations, strict=True):
        layers.append(nn.Linear(*start["weight"].shape, backend=backend, start=start))
        if name != "linear":
            layers.append(nn.Sine(30.0) if name == "sine" else nn.Activation(name))
    return nn.Sequential(layers)


class Ours(Contestant):
    """An engine on a backend."""

    def __init__(self, job: Job, name: str, backend: Backend) -> None:
        super().__init__(job)
        self.backend = backend
        x, y = job.data()
        self.x, self.y = backend.asarray(x), backend.asarray(y)
        self.model = network(job, backend)
        optimizer = SGD() if job.optimizer == "sgd" else Adam()
        optimizer.prepare(self.model.parameters)
        state = TrainState(self.model, LOSSES[job.loss], optimizer, constant(job.rate), steps=10**9, log_every=1)
        self.session = engine(name).prepare(state, self.x, self.y)
        self.graph: Any = None
        if name == "graph":
            self.model(self.x)  # compiles, which cannot be captured
            with backend.capture() as self.graph:
                self.model(self.x)
        self.loops = name.startswith("fused")

    def train(self, steps: int) -> None:
        self.session.advance(steps)

    def wait(self) -> None:
        self.backend.synchronize()

    def weights(self) -> list[np.ndarray]:
        return [self.backend.to_host(value) for value in self.model.parameters.values()]

    def forward(self, passes: int) -> None:
        if self.loops:
            raise NotImplementedError
        for _ in range(passes):
            if self.graph is None:
                self.model(self.x)
            else:
                self.graph.replay()


def field(device: str) -> Field:
    """The engines of the host ("cpu") or of the card ("gpu")."""
    names: tuple[str, ...] = ("eager", "graph", "fused", "fused-tf32")
    home = "cupy"
    if device == "cpu":
        names, home = ("eager", "tiled"), "numpy"

    def entrant(name: str) -> Callable[[Job], Contestant]:
        return lambda job: Ours(job, name, nnlab.backend(home))

    return {f"nnlab {name}": entrant(name) for name in names}


def reference(job: Job, device: str) -> Ours:
    """The eager engine in float64."""
    return Ours(job, "eager", nnlab.backend("numpy" if device == "cpu" else "cupy", dtype="float64"))


def numpy32(job: Job) -> Ours:
    """NumPy in float32, whose own distance from float64 the others are held against."""
    return Ours(job, "eager", nnlab.backend("numpy"))
