"""Optimisers: each changes the parameters in place, from their gradients and the rate of this step.

`update(parameters, gradients, rate)` takes dicts of arrays with the same keys, all of one home, and a Python float.
What an optimiser remembers between steps is in `arrays` (a dict of arrays) and `step` (updates so far).

An update has two halves, so that engines can put them in different places: `factors(step, rate)` is arithmetic on
Python floats, and `apply(parameters, gradients, factors)` is work on arrays.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from nnlab.backends import Array, backend_of
from nnlab.errors import ShapeError, UnknownName

Arrays = dict[str, Array]


class Optimizer(ABC):
    """What all optimisers share: the check of the arguments, and buffers made at the first update.

    memories: the names of the arrays kept for each parameter.
    """

    name: ClassVar[str]
    memories: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        self.arrays: Arrays = {}
        self.step = 0
        self._scratch: Arrays = {}

    @property
    def config(self) -> dict[str, Any]:
        """What `optimizer_from_config` needs to make this optimiser again, without what it remembers."""
        return {"optimizer": self.name}

    def update(self, parameters: Arrays, gradients: Arrays, rate: float) -> None:
        """Take one step.

        Raises ShapeError where gradients do not match the parameters, MixedBackendError where one lives elsewhere,
        ValueError for a bad rate.
        """
        rate = float(rate)  # a NumPy scalar would widen float32 arrays
        if not (rate >= 0 and math.isfinite(rate)):
            raise ValueError(f"the rate of a step must be a finite number from 0, not {rate}")
        if parameters.keys() != gradients.keys():
            raise ShapeError(f"parameters {sorted(parameters)} and gradients {sorted(gradients)} have different names")
        for name, parameter in parameters.items():
            gradient = gradients[name]
            if type(gradient) is not type(parameter):
                backend_of(parameter).require_home(**{f"the gradient of {name}": gradient})
            if gradient.shape != parameter.shape:
                raise ShapeError(f"{name} has shape {parameter.shape}, its gradient {gradient.shape}")
        self.prepare(parameters)
        self.step += 1
        self.apply(parameters, gradients, self.factors(self.step, rate))

    def factors(self, step: int, rate: float) -> tuple[float, ...]:
        """The numbers that `apply` needs for update number `step`, counted from 1."""
        return (rate,)

    def apply(self, parameters: Arrays, gradients: Arrays, factors: Sequence[Any]) -> None:
        """Change the parameters. factors: what `factors` gave, as floats or as 0-d arrays of the parameters' home."""
        for name, parameter in parameters.items():
            self._change(name, parameter, gradients[name], *factors)

    def prepare(self, parameters: Arrays) -> None:
        """Make the memories (zeros) and the scratch space of all parameters, where they are not there yet.

        Raises ShapeError where they are there, but of another network.
        """
        for name, parameter in parameters.items():
            for memory in self.memories:
                known = self.arrays.get(f"{memory}.{name}")
                if known is not None and known.shape != parameter.shape:
                    raise ShapeError(
                        f"this {type(self).__name__} remembers {memory} of another network: {name} has shape "
                        f"{parameter.shape}, there {known.shape}; make a new {type(self).__name__}()"
                    )
            if name not in self._scratch:
                xp = backend_of(parameter).xp
                self._scratch[name] = xp.empty_like(parameter)
                for memory in self.memories:
                    if f"{memory}.{name}" not in self.arrays:
                        self.arrays[f"{memory}.{name}"] = xp.zeros_like(parameter)

    @abstractmethod
    def _change(self, name: str, parameter: Array, gradient: Array, *factors: Any) -> None: ...


class SGD(Optimizer):
    """w <- w - rate * g: steepest descent (called stochastic when the gradient comes from a batch)."""

    name = "sgd"

    def _change(self, name: str, parameter: Array, gradient: Array, *factors: Any) -> None:
        (rate,) = factors
        step = self._scratch[name]
        backend_of(parameter).xp.multiply(gradient, rate, out=step)
        parameter -= step


class Momentum(Optimizer):
    """v <- momentum * v - rate * g; w <- w + v. The velocity v keeps what past steps agreed on (Polyak, 1964)."""

    name = "momentum"
    memories = ("velocity",)

    def __init__(self, momentum: float = 0.9) -> None:
        if not 0 <= momentum < 1:
            raise ValueError(f"momentum must be from 0 to below 1, not {momentum}")
        super().__init__()
        self.momentum = float(momentum)

    @property
    def config(self) -> dict[str, Any]:
        return {"optimizer": self.name, "momentum": self.momentum}

    def _change(self, name: str, parameter: Array, gradient: Array, *factors: Any) -> None:
        (rate,) = factors
        velocity, step = self.arrays[f"velocity.{name}"], self._scratch[name]
        backend_of(parameter).xp.multiply(gradient, rate, out=step)
        velocity *= self.momentum
        velocity -= step
        parameter += velocity


class Adam(Optimizer):
    """Steps scaled by running means of the gradient and of its square (Kingma and Ba, 2015, algorithm 1).

    m <- beta1 m + (1 - beta1) g; v <- beta2 v + (1 - beta2) g^2; with the bias corrections m / (1 - beta1^k) and
    v / (1 - beta2^k) at step k, w <- w - rate * m / (sqrt(v) + epsilon).
    """

    name = "adam"
    memories = ("first_moment", "second_moment")

    def __init__(self, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8) -> None:
        if not (0 <= beta1 < 1 and 0 <= beta2 < 1 and epsilon > 0):
            raise ValueError(f"Adam needs betas from 0 to below 1 and epsilon > 0, not {beta1}, {beta2}, {epsilon}")
        super().__init__()
        self.beta1, self.beta2, self.epsilon = float(beta1), float(beta2), float(epsilon)

    @property
    def config(self) -> dict[str, Any]:
        return {"optimizer": self.name, "beta1": self.beta1, "beta2": self.beta2, "epsilon": self.epsilon}

    def factors(self, step: int, rate: float) -> tuple[float, ...]:
        return 1.0 / (1.0 - self.beta2**step), rate / (1.0 - self.beta1**step)

    def _change(self, name: str, parameter: Array, gradient: Array, *factors: Any) -> None:
        correct_second, corrected_rate = factors
        xp, step = backend_of(parameter).xp, self._scratch[name]
        m, v = self.arrays[f"first_moment.{name}"], self.arrays[f"second_moment.{name}"]
        m *= self.beta1
        xp.multiply(gradient, 1.0 - self.beta1, out=step)
        m += step
        v *= self.beta2
        xp.multiply(gradient, gradient, out=step)
        step *= 1.0 - self.beta2
        v += step
        # The corrections enter as factors of whole passes that are made anyway.
        xp.multiply(v, correct_second, out=step)
        xp.sqrt(step, out=step)
        step += self.epsilon
        xp.divide(m, step, out=step)
        step *= corrected_rate
        parameter -= step


OPTIMIZERS: dict[str, type[Optimizer]] = {kind.name: kind for kind in (SGD, Momentum, Adam)}


def optimizer_from_config(config: dict[str, Any]) -> Optimizer:
    """The optimiser that `optimizer.config` describes, with nothing remembered. Raises UnknownName."""
    settings = dict(config)
    name = settings.pop("optimizer")
    if name not in OPTIMIZERS:
        raise UnknownName("optimizer", name, OPTIMIZERS)
    return OPTIMIZERS[name](**settings)
