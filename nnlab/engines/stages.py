"""The network cut into stages, a linear layer with the activation that follows it, working in reused buffers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnlab.engines import compiled
from nnlab.errors import EngineCannot
from nnlab.nn.activations import Function, activation
from nnlab.nn.layers import Activation, Layer, Linear, Sine
from nnlab.nn.sequential import Sequential

LANES = 16  # from this width on, the compiled loops along a row fill the processor's vectors


@dataclass(frozen=True)
class Slot:
    """A linear layer's place in the engine.

    tile: rows, at most. below: the stage before it, None for the first. part: where a tile's "weight" and "bias"
    gradients go.
    """

    linear: Linear
    tile: int
    below: Stage | None
    part: dict[str, np.ndarray]


class Stage:
    """a = f(x W + b) for tiles of rows, here with f(z) = z.

    A backward pass overwrites what its forward pass left in the buffers, since nothing needs it afterwards: less memory
    is more of it in the cache. above: the weights of a layer of one output that follows; given to a sine only.
    """

    needs_output = False  # by `slope`; otherwise dLoss/da takes its place
    above: np.ndarray | None = None

    def __init__(self, slot: Slot) -> None:
        linear, tile, dtype = slot.linear, slot.tile, slot.linear.backend.dtype
        self.weight, self.bias = linear.parameters["weight"], linear.parameters.get("bias")
        self.below, self.part = slot.below, slot.part
        self.z = np.empty((tile, linear.outputs), dtype)
        keep = self.below is not None and self.below.needs_output
        self.down = np.empty((tile, linear.inputs), dtype) if keep else None
        self.ones = np.ones((1, tile), dtype)

    def forward(self, x: np.ndarray) -> np.ndarray:
        self.x = x
        z = self.z[: len(x)]
        np.matmul(x, self.weight, out=z)
        return self.activate(z)

    def backward(self, gradient: np.ndarray) -> np.ndarray:
        """Takes dLoss/da (and spoils it), fills `part`, gives dLoss/dx.

        The first stage gives nothing new, and the one whose weights are `above` for the next gives dLoss/dz.
        """
        gradient = self.slope(gradient)
        np.matmul(self.x.T, gradient, out=self.part["weight"])
        if self.below is None or self.below.above is not None:
            return gradient
        down = self.x if self.down is None else self.down[: len(gradient)]
        product = np.matmul if gradient.shape[1] > 1 else np.multiply  # one column: BLAS takes five times as long
        product(gradient, self.weight.T, out=down)
        return down

    def activate(self, z: np.ndarray) -> np.ndarray:
        """f(z + b) from z = x W, which it may spoil."""
        if self.bias is not None:
            z += self.bias
        return z

    def slope(self, gradient: np.ndarray) -> np.ndarray:
        """dLoss/dz from dLoss/da, and its column sums in the bias's part."""
        if self.bias is not None:
            np.matmul(self.ones[:, : len(gradient)], gradient, out=self.part["bias"].reshape(1, -1))
        return gradient


class TanhStage(Stage):
    needs_output = True

    def activate(self, z: np.ndarray) -> np.ndarray:
        self.a = super().activate(z)
        np.tanh(self.a, out=self.a)
        return self.a

    def slope(self, gradient: np.ndarray) -> np.ndarray:
        a = self.a
        np.multiply(a, a, out=a)
        np.subtract(1.0, a, out=a)
        gradient *= a
        return super().slope(gradient)


class SineStage(Stage):
    def __init__(self, slot: Slot, omega_0: float) -> None:
        super().__init__(slot)
        self.omega_0 = omega_0
        self.a = np.empty_like(self.z)

    def activate(self, z: np.ndarray) -> np.ndarray:
        self.argument = super().activate(z)
        self.argument *= self.omega_0
        a: np.ndarray = self.a[: len(z)]
        np.sin(self.argument, out=a)
        return a

    def slope(self, gradient: np.ndarray) -> np.ndarray:
        np.cos(self.argument, out=self.argument)
        gradient *= self.argument
        gradient *= self.omega_0
        return super().slope(gradient)


class FunctionStage(Stage):
    """Any other activation, by its own functions; these make new arrays."""

    needs_output = True

    def __init__(self, slot: Slot, function: Function) -> None:
        super().__init__(slot)
        self.function = function

    def activate(self, z: np.ndarray) -> np.ndarray:
        self.argument = super().activate(z)
        a: np.ndarray = self.function.forward(np, self.argument)
        self.a = a
        return a

    def slope(self, gradient: np.ndarray) -> np.ndarray:
        return super().slope(self.function.backward(np, gradient, self.argument, self.a))


class CompiledStage(Stage):
    """Bias, activation and slope, each in one pass over the tile, compiled by Numba for float32."""

    def __init__(self, slot: Slot) -> None:
        super().__init__(slot)
        from nnlab.engines.compiled import activations  # imports Numba

        self.kernels = activations
        outputs = slot.linear.outputs
        self.shift = np.zeros(outputs, np.float32) if self.bias is None else self.bias
        self.sums = self.part.get("bias", np.empty(outputs, np.float32))


class CompiledTanh(CompiledStage):
    needs_output = True

    def activate(self, z: np.ndarray) -> np.ndarray:
        self.a = z
        self.kernels.tanh_tile(z, self.shift)
        return z

    def slope(self, gradient: np.ndarray) -> np.ndarray:
        self.kernels.tanh_slope_tile(gradient, self.a, self.sums)
        return gradient


class CompiledSine(CompiledStage):
    def __init__(self, slot: Slot, omega_0: float) -> None:
        super().__init__(slot)
        self.omega_0 = np.float32(omega_0)
        self.a = np.empty_like(self.z)

    def activate(self, z: np.ndarray) -> np.ndarray:
        a: np.ndarray = self.a[: len(z)]
        self.steepness = z
        self.kernels.sine_tile(z, self.shift, self.omega_0, a)
        return a

    def slope(self, gradient: np.ndarray) -> np.ndarray:
        if self.above is not None:
            self.kernels.column_slope_tile(gradient, self.above, self.steepness, self.sums)
            return self.steepness
        self.kernels.slope_tile(gradient, self.steepness, self.sums)
        return gradient


def stages(model: Sequential, tile: int, parts: dict[str, np.ndarray]) -> list[Stage]:
    """The stages of a network, which leave a tile's gradients in `parts`, by the model's names.

    With Numba, float32 tanh and sine go through the compiled stages. Raises EngineCannot for a layer that follows no
    linear one, and for networks and layers derived from ours: they may compute anything.
    """
    if type(model) is not Sequential:
        raise EngineCannot(f"{type(model).__name__} may compute what Sequential does not: use engine='eager'")
    found: list[Stage] = []
    place = 0
    while place < len(model.layers):
        linear = model.layers[place]
        after = model.layers[place + 1] if place + 1 < len(model.layers) else None
        if type(linear) is not Linear:
            raise EngineCannot(
                f"the tiled engine takes linear layers, each with one activation behind it; layer {place}, "
                f"{type(linear).__name__}, does not fit: use engine='eager'"
            )
        if type(after) is Linear:
            after = None
        below = found[-1] if found else None
        found.append(_stage(place, Slot(linear, tile, below, _of(place, parts)), after))
        if isinstance(below, CompiledSine) and linear.outputs == 1:
            below.above = linear.parameters["weight"].reshape(-1)
        place += 1 if after is None else 2
    return found


def _of(place: int, parts: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.split(".")[1]: part for name, part in parts.items() if name.startswith(f"{place}.")}


def _stage(place: int, slot: Slot, after: Layer | None) -> Stage:
    if after is None:
        return Stage(slot)
    fast = slot.linear.backend.dtype == np.float32 and slot.linear.outputs >= LANES and compiled.have_numba()
    if type(after) is Sine:
        return CompiledSine(slot, after.omega_0) if fast else SineStage(slot, after.omega_0)
    if type(after) is Activation:
        if after.name == "tanh":
            return CompiledTanh(slot) if fast else TanhStage(slot)
        return FunctionStage(slot, activation(after.name))
    raise EngineCannot(f"the tiled engine does not know layer {place + 1}, {type(after).__name__}: use engine='eager'")
