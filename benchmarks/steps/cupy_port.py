"""CuPy, written down as the NumPy code was: `@` for products, a Python loop over the steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy as cp
import numpy as np

from benchmarks.steps.contestant import Contestant, Field
from benchmarks.steps.jobs import Job

# name -> (f(z), f'(z) from z and a)
ACTIVATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "linear": (lambda z: z, lambda z, a: 1.0),
    "tanh": (cp.tanh, lambda z, a: 1.0 - a * a),
    "sigmoid": (lambda z: 1.0 / (1.0 + cp.exp(-z)), lambda z, a: a * (1.0 - a)),
    "leaky_relu": (lambda z: cp.where(z > 0, z, 0.01 * z), lambda z, a: cp.where(z > 0, 1.0, 0.01).astype(z.dtype)),
    "sine": (lambda z: cp.sin(30.0 * z), lambda z, a: 30.0 * cp.cos(30.0 * z)),
}


class StraightPort(Contestant):
    """reads: the loss is read after every step. pool: CuPy's memory pool."""

    def __init__(self, job: Job, *, reads: bool, pool: bool = True) -> None:
        super().__init__(job)
        self.reads = reads
        self.malloc = cp.get_default_memory_pool().malloc if pool else None
        self.x, self.y = (cp.asarray(part, dtype=cp.float32) for part in job.data())
        self.layers = [
            {key: cp.asarray(value, dtype=cp.float32) for key, value in layer.items()} for layer in job.start()
        ]
        self.moments = [
            {key: (cp.zeros_like(value), cp.zeros_like(value)) for key, value in layer.items()} for layer in self.layers
        ]
        self.count = 0

    def _predict(self) -> tuple[list[Any], list[Any]]:
        values, arguments = [self.x], []
        for layer, name in zip(self.layers, self.job.activations, strict=True):
            z = values[-1] @ layer["weight"]
            if self.job.bias:
                z = z + layer["bias"]
            arguments.append(z)
            values.append(ACTIVATIONS[name][0](z))
        return values, arguments

    def _step(self) -> None:
        values, arguments = self._predict()
        error = values[-1] - self.y
        squares = error * error
        loss = cp.mean(squares) if self.job.loss == "mse" else cp.sum(squares)
        delta = error * (2.0 / error.size if self.job.loss == "mse" else 2.0)
        if self.reads:
            self.last = float(loss)
        gradients = []
        for place in reversed(range(len(self.layers))):
            delta = delta * ACTIVATIONS[self.job.activations[place]][1](arguments[place], values[place + 1])
            gradients.append({"weight": values[place].T @ delta, "bias": cp.sum(delta, axis=0)})
            if place:
                delta = delta @ self.layers[place]["weight"].T
        self.count += 1
        for layer, moment, gradient in zip(self.layers, self.moments, reversed(gradients), strict=True):
            for key, value in layer.items():
                self._update(value, *moment[key], gradient[key])

    def _update(self, value: Any, m: Any, v: Any, g: Any) -> None:
        if self.job.optimizer == "sgd":
            value -= self.job.rate * g
            return
        m[...] = 0.9 * m + 0.1 * g
        v[...] = 0.999 * v + 0.001 * g * g
        value -= self.job.rate / (1 - 0.9**self.count) * m / (cp.sqrt(v / (1 - 0.999**self.count)) + 1e-8)

    def train(self, steps: int) -> None:
        with cp.cuda.using_allocator(self.malloc):
            for _ in range(steps):
                self._step()

    def forward(self, passes: int) -> None:
        with cp.cuda.using_allocator(self.malloc):
            for _ in range(passes):
                self._predict()

    def wait(self) -> None:
        cp.cuda.Device().synchronize()

    def weights(self) -> list[np.ndarray]:
        return [cp.asnumpy(value) for layer in self.layers for value in layer.values()]


def field(device: str) -> Field:
    if device == "cpu":
        return {}
    return {
        "CuPy straight port, loss read every step": lambda job: StraightPort(job, reads=True),
        "CuPy straight port": lambda job: StraightPort(job, reads=False),
        "CuPy straight port, no pool": lambda job: StraightPort(job, reads=False, pool=False),
    }
