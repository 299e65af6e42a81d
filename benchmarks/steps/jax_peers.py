"""JAX: one jitted step a call, and lax.fori_loop over the step on the device."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # the card is shared with the other contestants

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.steps.contestant import Contestant, Field
from benchmarks.steps.jobs import Job

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "linear": lambda z: z,
    "tanh": jnp.tanh,
    "sigmoid": jax.nn.sigmoid,
    "leaky_relu": lambda z: jnp.where(z > 0, z, 0.01 * z),
    "sine": lambda z: jnp.sin(30.0 * z),
}


class Jax(Contestant):
    """loop: many steps in one call. precision: of matrix products, "highest" is float32."""

    def __init__(self, job: Job, device: str, *, loop: bool, precision: str = "highest") -> None:
        super().__init__(job)
        self.home = jax.devices(device)[0]
        x, y = job.data()
        self.x, self.y = (jax.device_put(part.astype(np.float32), self.home) for part in (x, y))
        parameters = [{key: value.astype(np.float32) for key, value in layer.items()} for layer in job.start()]
        zeros = jax.tree.map(np.zeros_like, parameters)
        self.state = jax.device_put((parameters, zeros, zeros, np.float32(0)), self.home)
        self.loop = loop
        with jax.default_matmul_precision(precision):
            self.predict = jax.jit(partial(_predict, job)).lower(parameters, self.x).compile()
            step = partial(_step, job)
            self.one = jax.jit(step).lower(self.state, self.x, self.y).compile()
            self.many = (
                jax.jit(lambda n, state, x, y: lax.fori_loop(0, n, lambda i, s: step(s, x, y), state))
                .lower(jax.device_put(np.int32(1), self.home), self.state, self.x, self.y)
                .compile()
                if loop
                else None
            )

    def train(self, steps: int) -> None:
        if self.many is not None:
            self.state = self.many(jax.device_put(np.int32(steps), self.home), self.state, self.x, self.y)
            return
        for _ in range(steps):
            self.state = self.one(self.state, self.x, self.y)

    def forward(self, passes: int) -> None:
        if self.loop:
            raise NotImplementedError
        for _ in range(passes):
            self.predicted = self.predict(self.state[0], self.x)

    def wait(self) -> None:
        jax.block_until_ready((self.state, getattr(self, "predicted", None)))

    def weights(self) -> list[np.ndarray]:
        order = ("weight", "bias") if self.job.bias else ("weight",)
        return [np.asarray(layer[key]) for layer in self.state[0] for key in order]


def _predict(job: Job, parameters: Any, x: Any) -> Any:
    for layer, name in zip(parameters, job.activations, strict=True):
        x = x @ layer["weight"]
        x = ACTIVATIONS[name](x + layer["bias"] if job.bias else x)
    return x


def _step(job: Job, state: Any, x: Any, y: Any) -> Any:
    parameters, first, second, count = state
    mean = jnp.mean if job.loss == "mse" else jnp.sum
    gradients = jax.grad(lambda p: mean((_predict(job, p, x) - y) ** 2))(parameters)
    if job.optimizer == "sgd":
        return jax.tree.map(lambda w, g: w - job.rate * g, parameters, gradients), first, second, count
    count += 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)
    rate, correction = job.rate / (1 - 0.9**count), 1 / (1 - 0.999**count)
    moved = jax.tree.map(lambda w, m, v: w - rate * m / (jnp.sqrt(v * correction) + 1e-8), parameters, first, second)
    return moved, first, second, count


def field(device: str) -> Field:
    ways: Field = {
        "JAX jit, a step a call": lambda job: Jax(job, device, loop=False),
        "JAX loop": lambda job: Jax(job, device, loop=True),
    }
    if device == "gpu":
        ways["JAX loop, TF32"] = lambda job: Jax(job, device, loop=True, precision="tensorfloat32")
    return ways
