"""The network cut into stages, a linear layer with the activation that follows it, working in reused buffers."""

from __future__ import annotations

import numpy as np

from nnlab.errors import EngineCannot
from nnlab.nn.activations import Function, activation
from nnlab.nn.layers import Activation, Layer, Linear, Sine
from nnlab.nn.sequential import Sequential


class Stage:
    """a = f(x W + b) for tiles of up to `tile` rows.

    gradients: sums over the tiles since `clear`, by the model's names. A backward pass overwrites what its forward
    pass left in the buffers, since nothing needs it afterwards.
    """

    def __init__(self, place: int, linear: Linear, tile: int, *, first: bool) -> None:
        dtype = linear.backend.dtype
        self.names = {key: f"{place}.{key}" for key in linear.parameters}
        self.weight, self.bias = linear.parameters["weight"], linear.parameters.get("bias")
        self.first = first
        self.z = np.empty((tile, linear.outputs), dtype)
        self.down = np.empty((tile, linear.inputs), dtype)
        self.ones = np.ones((1, tile), dtype)
        self.gradients = {self.names[key]: np.zeros_like(value) for key, value in linear.parameters.items()}
        self.tile_gradients = {name: np.empty_like(value) for name, value in self.gradients.items()}

    def clear(self) -> None:
        for value in self.gradients.values():
            value.fill(0.0)

    def forward(self, x: np.ndarray) -> np.ndarray:
        self.x = x
        z = self.z[: len(x)]
        np.matmul(x, self.weight, out=z)
        if self.bias is not None:
            z += self.bias
        return self.activate(z)

    def backward(self, gradient: np.ndarray) -> np.ndarray:
        """Takes dLoss/da (and spoils it), adds to the gradients, gives dLoss/dx; the first stage gives nothing new."""
        gradient = self.slope(gradient)
        rows = len(gradient)
        self._add("weight", self.x.T, gradient)
        if self.bias is not None:
            self._add("bias", self.ones[:, :rows], gradient)
        if self.first:
            return gradient
        down = self.down[:rows]
        np.matmul(gradient, self.weight.T, out=down)
        return down

    def activate(self, z: np.ndarray) -> np.ndarray:
        return z

    def slope(self, gradient: np.ndarray) -> np.ndarray:
        return gradient

    def _add(self, key: str, left: np.ndarray, gradient: np.ndarray) -> None:
        name = self.names[key]
        part = self.tile_gradients[name]
        np.matmul(left, gradient, out=part.reshape(len(left), -1))  # a bias is a row of ones times the gradient
        self.gradients[name] += part


class TanhStage(Stage):
    def activate(self, z: np.ndarray) -> np.ndarray:
        np.tanh(z, out=z)
        self.a = z
        return z

    def slope(self, gradient: np.ndarray) -> np.ndarray:
        a = self.a
        np.multiply(a, a, out=a)
        np.subtract(1.0, a, out=a)
        gradient *= a
        return gradient


class SineStage(Stage):
    def __init__(self, place: int, linear: Linear, tile: int, omega_0: float, *, first: bool) -> None:
        super().__init__(place, linear, tile, first=first)
        self.omega_0 = omega_0
        self.a = np.empty_like(self.z)

    def activate(self, z: np.ndarray) -> np.ndarray:
        z *= self.omega_0
        self.argument = z
        a: np.ndarray = self.a[: len(z)]
        np.sin(z, out=a)
        return a

    def slope(self, gradient: np.ndarray) -> np.ndarray:
        np.cos(self.argument, out=self.argument)
        gradient *= self.argument
        gradient *= self.omega_0
        return gradient


class FunctionStage(Stage):
    """Any other activation, by its own functions; these make new arrays."""

    def __init__(self, place: int, linear: Linear, tile: int, function: Function, *, first: bool) -> None:
        super().__init__(place, linear, tile, first=first)
        self.function = function

    def activate(self, z: np.ndarray) -> np.ndarray:
        self.argument = z
        a: np.ndarray = self.function.forward(np, z)
        self.a = a
        return a

    def slope(self, gradient: np.ndarray) -> np.ndarray:
        result: np.ndarray = self.function.backward(np, gradient, self.argument, self.a)
        return result


def stages(model: Sequential, tile: int) -> list[Stage]:
    """The stages of a network. Raises EngineCannot for a layer that follows no linear one."""
    found: list[Stage] = []
    place = 0
    while place < len(model.layers):
        linear = model.layers[place]
        after = model.layers[place + 1] if place + 1 < len(model.layers) else None
        if not isinstance(linear, Linear):
            raise EngineCannot(f"the tiled engine needs a Linear before layer {place}, {type(linear).__name__}")
        found.append(_stage(place, linear, after, tile, first=place == 0))
        place += 1 if after is None or isinstance(after, Linear) else 2
    return found


def _stage(place: int, linear: Linear, after: Layer | None, tile: int, *, first: bool) -> Stage:
    if after is None or isinstance(after, Linear):
        return Stage(place, linear, tile, first=first)
    if isinstance(after, Sine):
        return SineStage(place, linear, tile, after.omega_0, first=first)
    if isinstance(after, Activation):
        if after.name == "tanh":
            return TanhStage(place, linear, tile, first=first)
        return FunctionStage(place, linear, tile, activation(after.name), first=first)
    raise EngineCannot(f"the tiled engine does not know layer {place + 1}, {type(after).__name__}")
