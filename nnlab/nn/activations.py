"""Activation functions, each with its derivative written in terms of what the forward pass already has.

Every function takes the array module `xp` first, so the same line runs on every backend.
`forward(xp, z)` gives a; `backward(xp, gradient, z, a)` gives the gradient with respect to z.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nnlab.backends import Array, backend_of
from nnlab.errors import UnknownName

LEAK = 0.01  # slope of leaky ReLU left of zero


@dataclass(frozen=True)
class Function:
    """An activation: its name, its forward pass and its backward pass."""

    name: str
    forward: Callable[[Any, Array], Array]
    backward: Callable[[Any, Array, Array, Array], Array]


def _linear(xp: Any, z: Array) -> Array:
    return z


def _linear_backward(xp: Any, gradient: Array, z: Array, a: Array) -> Array:
    return gradient


def _tanh(xp: Any, z: Array) -> Array:
    return xp.tanh(z)


def _tanh_backward(xp: Any, gradient: Array, z: Array, a: Array) -> Array:
    slope = a * a
    xp.subtract(1.0, slope, out=slope)
    slope *= gradient
    return slope


def _sigmoid(xp: Any, z: Array) -> Array:
    e = xp.exp(-xp.abs(z))  # never above 1, so nothing overflows on either side
    return xp.where(z >= 0, 1.0, e) / (1.0 + e)


def _sigmoid_backward(xp: Any, gradient: Array, z: Array, a: Array) -> Array:
    slope = 1.0 - a
    slope *= a
    slope *= gradient
    return slope


def _relu(xp: Any, z: Array) -> Array:
    return xp.maximum(z, 0.0)


def _relu_backward(xp: Any, gradient: Array, z: Array, a: Array) -> Array:
    return gradient * (z > 0)


def _leaky_relu(xp: Any, z: Array) -> Array:
    return xp.maximum(z, LEAK * z)


def _leaky_relu_backward(xp: Any, gradient: Array, z: Array, a: Array) -> Array:
    return xp.where(z > 0, gradient, LEAK * gradient)


FUNCTIONS = {
    f.name: f
    for f in (
        Function("linear", _linear, _linear_backward),
        Function("tanh", _tanh, _tanh_backward),
        Function("sigmoid", _sigmoid, _sigmoid_backward),
        Function("relu", _relu, _relu_backward),
        Function("leaky_relu", _leaky_relu, _leaky_relu_backward),
    )
}


def activation(name: str) -> Function:
    """The activation called `name`. Raises UnknownName with the nearest valid one."""
    if name not in FUNCTIONS:
        raise UnknownName("activation", name, FUNCTIONS)
    return FUNCTIONS[name]


def sigmoid(z: Array) -> Array:
    """1 / (1 + exp(-z)), element by element, without overflow at any z; any shape, on any backend."""
    return _sigmoid(backend_of(z).xp, z)


def softmax(z: Array) -> Array:
    """exp(z) over its sum along the last axis; the largest z is subtracted first, so nothing overflows."""
    xp = backend_of(z).xp
    e = xp.exp(z - xp.max(z, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)
