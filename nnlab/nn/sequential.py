"""A network as a list of layers, run forwards and then backwards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nnlab.backends import Array, Backend
from nnlab.errors import MixedBackendError, ShapeError
from nnlab.nn.layers import Layer, Linear
from nnlab.nn.table import layer_table


class Sequential:
    """Layers one after another. `model(x)` gives the prediction, `model.backward(gradient)` the gradients.

    parameters, gradients: dicts of arrays, keyed by the layer's place and the array's name: "0.weight", "0.bias", ...
    Raises MixedBackendError where layers live in different homes.
    """

    def __init__(self, layers: Iterable[Layer]) -> None:
        self.layers = list(layers)
        if len({id(layer) for layer in self.layers}) < len(self.layers):
            raise ValueError("a layer keeps what its backward pass needs, so it can be used once; make two of it")
        homes = [layer._backend for layer in self.layers if layer._backend is not None]
        if not homes:
            raise TypeError("Sequential needs at least one layer with a backend: a Linear has one")
        self.backend: Backend = homes[0]
        for place, layer in enumerate(self.layers):
            if layer._backend is None:
                layer._backend = self.backend
            elif layer.backend.home != self.backend.home or layer.backend.dtype != self.backend.dtype:
                raise MixedBackendError(
                    f"layer {place} lives on {layer.backend!r}, the first on {self.backend!r}; "
                    "make all layers with the same backend="
                )
        _check_widths(self.layers)
        self._predicted: tuple[int, ...] | None = None
        self.parameters = self._named("parameters")
        self.gradients = self._named("gradients")

    def _named(self, kind: str) -> dict[str, Array]:
        return {
            f"{i}.{key}": value for i, layer in enumerate(self.layers) for key, value in getattr(layer, kind).items()
        }

    @property
    def inputs(self) -> int | None:
        """How many columns `x` must have, or None where no layer says."""
        return next((layer.inputs for layer in self.layers if isinstance(layer, Linear)), None)

    @property
    def outputs(self) -> int | None:
        """How many columns the prediction has, or None where no layer says."""
        return next((layer.outputs for layer in reversed(self.layers) if isinstance(layer, Linear)), None)

    @property
    def config(self) -> dict[str, Any]:
        """What `from_config` needs to build this network again; plain dicts, lists and numbers."""
        return {"layers": [layer.config for layer in self.layers]}

    def __call__(self, x: Array) -> Array:
        """The prediction (rows, outputs) for x (rows, inputs).

        Raises MixedBackendError, TypeError or ShapeError for an x of another home, dtype or width.
        """
        self.check_input(x)
        for layer in self.layers:
            x = layer(x)
        self._predicted = x.shape
        return x

    def backward(self, gradient: Array, *, to_input: bool = True) -> Array | None:
        """Fill `gradients` from dLoss/dPrediction (rows, outputs); returns dLoss/dx (rows, inputs).

        to_input=False leaves out the last product, dLoss/dx, which training does not need, and returns None.
        Raises RuntimeError before the first forward pass, and MixedBackendError, TypeError or ShapeError for a gradient
        of another home, dtype or shape than the last prediction's.
        """
        self._check_gradient(gradient)
        for layer in reversed(self.layers[1:]):
            gradient = layer.backward(gradient)
        return self.layers[0].backward(gradient, to_input=to_input)

    def _check_gradient(self, gradient: Array) -> None:
        if self._predicted is None:
            raise RuntimeError("backward needs what a forward pass remembers: call model(x) before model.backward(...)")
        self._check_kind("gradient", gradient)
        if gradient.shape != self._predicted:
            raise ShapeError(f"gradient has shape {gradient.shape}, the last prediction had {self._predicted}")

    def _check_kind(self, name: str, array: Array) -> None:
        self.backend.require_home(**{name: array})
        if array.dtype != self.backend.dtype:
            raise TypeError(
                f"{name} is {array.dtype}, the network computes in {self.backend.dtype}; "
                f'convert it: {name} = backend.asarray({name}, dtype="{self.backend.dtype}")'
            )

    def check_input(self, x: Array, name: str = "x") -> None:
        """Raise unless x has this network's home, dtype and width."""
        self._check_kind(name, x)
        if x.ndim != 2 or (self.inputs is not None and x.shape[1] != self.inputs):
            raise ShapeError(f"{name} has shape {x.shape}; this network takes (rows, {self.inputs})")

    def to(self, backend: Backend) -> Sequential:
        """A copy of this network in another home, or with another dtype."""
        from nnlab.nn.networks import from_config

        copy = from_config(self.config, backend=backend)
        for key, value in self.parameters.items():
            copy.parameters[key][...] = backend.asarray(self.backend.to_host(value))
        return copy

    def astype(self, dtype: str) -> Sequential:
        """A copy of this network that computes in another floating type."""
        return self.to(self.backend.astype(dtype))

    def __repr__(self) -> str:
        return layer_table(self.layers, self.backend)


def _check_widths(layers: list[Layer]) -> None:
    width: int | None = None
    for place, layer in enumerate(layers):
        if isinstance(layer, Linear):
            if width is not None and layer.inputs != width:
                raise ShapeError(f"layer {place} takes {layer.inputs} inputs, but the layer before it gives {width}")
            width = layer.outputs
