"""Is a hand-written backward pass right? Compare it with slopes measured by central differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import overload

import numpy as np

from nnlab.backends import Array, backend
from nnlab.backends import backend_of as home_backend_of
from nnlab.nn.losses import Loss
from nnlab.nn.sequential import Sequential

Parameters = dict[str, np.ndarray]


@overload
def numerical_gradient(
    f: Callable[[Parameters], float], parameters: Parameters, *, epsilon: float = 1e-6
) -> Parameters: ...
@overload
def numerical_gradient(
    f: Callable[[np.ndarray], float], parameters: np.ndarray, *, epsilon: float = 1e-6
) -> np.ndarray: ...
def numerical_gradient(
    f: Callable[..., float], parameters: Parameters | np.ndarray, *, epsilon: float = 1e-6
) -> Parameters | np.ndarray:
    """The gradient of f at `parameters` by central differences, (f(p + e) - f(p - e)) / 2e, one number at a time.

    parameters: a float64 array, or a dict of them; f takes the same and returns a number. Each number is moved in
    place and put back. The error is of order epsilon^2 plus rounding / epsilon. Raises TypeError below float64,
    where rounding drowns the slope.
    """
    named = parameters if isinstance(parameters, dict) else {"parameters": parameters}
    slopes: Parameters = {}
    for name, values in named.items():
        if values.dtype != np.float64:
            raise TypeError(f"{name} is {values.dtype}; central differences need float64: {name}.astype('float64')")
        slopes[name] = np.empty_like(values)
        for index in np.ndindex(values.shape):
            kept = values[index]
            values[index] = kept + epsilon
            above = float(f(parameters))
            values[index] = kept - epsilon
            below = float(f(parameters))
            values[index] = kept
            slopes[name][index] = (above - below) / (2 * epsilon)
    return slopes if isinstance(parameters, dict) else slopes["parameters"]


@dataclass(frozen=True)
class GradientReport:
    """Per array, ‖backward − measured‖ / (‖backward‖ + ‖measured‖): about 1e-8 where right, near 1 where wrong."""

    errors: dict[str, float]
    tolerance: float

    @property
    def worst(self) -> float:
        return max(self.errors.values())

    @property
    def ok(self) -> bool:
        return self.worst <= self.tolerance

    def __repr__(self) -> str:
        width = max(len(name) for name in self.errors)
        lines = [
            f"{name:<{width}}  {error:.1e}  {'ok' if error <= self.tolerance else 'WRONG'}"
            for name, error in self.errors.items()
        ]
        return "\n".join([f"{'array':<{width}}  relative error", *lines])


def check_gradients(
    model: Sequential, loss: Loss, x: Array, y: Array, *, epsilon: float = 1e-6, tolerance: float = 1e-6
) -> GradientReport:
    """Compare `model.backward` with central differences, for every parameter and for the input.

    Runs on a float64 copy on the host, so the model, wherever it lives, is left as it is. x: (rows, inputs),
    y: (rows, outputs). Two forward passes a number: use few rows and a small network.
    """
    host = backend("numpy", dtype="float64")
    copy = model.to(host)
    x64 = np.array(home_backend_of(x).to_host(x), np.float64)
    y64 = np.array(home_backend_of(y).to_host(y), np.float64)

    _, gradient = loss(copy(x64), y64)
    input_gradient = copy.backward(gradient)
    assert input_gradient is not None
    by_hand = {**{name: value.copy() for name, value in copy.gradients.items()}, "input": input_gradient}
    watched: Parameters = {**copy.parameters, "input": x64}
    measured = numerical_gradient(lambda _: float(loss(copy(x64), y64)[0]), watched, epsilon=epsilon)
    return GradientReport({name: _distance(by_hand[name], measured[name]) for name in watched}, tolerance)


def _distance(a: np.ndarray, b: np.ndarray) -> float:
    size = float(np.linalg.norm(a) + np.linalg.norm(b))
    return float(np.linalg.norm(a - b)) / size if size else 0.0
