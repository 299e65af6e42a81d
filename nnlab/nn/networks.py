"""Ready-made networks, and networks built again from their configuration."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from nnlab.backends import Backend
from nnlab.errors import ShapeError, UnknownName
from nnlab.nn.activations import FUNCTIONS
from nnlab.nn.activations import activation as activation_of
from nnlab.nn.initialisers import Initialiser, generator, initialiser, siren_bias, siren_weight
from nnlab.nn.layers import Activation, Layer, Linear, Sine
from nnlab.nn.sequential import Sequential


def mlp(
    sizes: Sequence[int],
    *,
    activation: str = "tanh",
    output: str = "linear",
    bias: bool = True,
    init: str | Initialiser | None = None,
    backend: Backend,
    rng: np.random.Generator,
) -> Sequential:
    """A multi-layer perceptron: sizes (inputs, hidden ..., outputs), `activation` between, `output` at the end.

    init: "xavier", "he", "normal", a function (rng, fan_in, fan_out) -> weight, or None: He for layers followed by
    a ReLU, Xavier for the others. Biases start at zero. Raises UnknownName and ShapeError.
    """
    _check_sizes(sizes)
    activation_of(activation)
    activation_of(output)
    layers: list[Layer] = []
    for place, (fan_in, fan_out) in enumerate(pairwise(sizes)):
        follows = output if place == len(sizes) - 2 else activation
        draw = initialiser(init, activation=activation_of(follows).name)
        layers.append(Linear(fan_in, fan_out, bias=bias, init=draw, backend=backend, rng=rng))
        if follows != "linear":
            layers.append(Activation(follows, backend=backend))
    return Sequential(layers)


def siren(sizes: Sequence[int], *, omega_0: float = 30.0, backend: Backend, rng: np.random.Generator) -> Sequential:
    """A SIREN: sizes (inputs, hidden ..., outputs), sines between, linear at the end; inputs belong in [-1, 1].

    First weights U(±1/fan_in), later ones U(±sqrt(6/fan_in)/omega_0), biases U(±1/sqrt(fan_in)); see `siren_weight`.
    """
    _check_sizes(sizes)
    generator(rng)
    layers: list[Layer] = []
    for place, (fan_in, fan_out) in enumerate(pairwise(sizes)):
        start = {
            "weight": siren_weight(rng, fan_in, fan_out, first=place == 0, omega_0=omega_0),
            "bias": siren_bias(rng, fan_in, fan_out),
        }
        layers += [Linear(fan_in, fan_out, backend=backend, start=start), Sine(omega_0, backend=backend)]
    return Sequential(layers[:-1])


def from_config(config: dict[str, Any], *, backend: Backend) -> Sequential:
    """The network that `model.config` describes, with all parameters zero. Raises UnknownName for a foreign layer."""
    return Sequential([_layer(entry, backend) for entry in config["layers"]])


def _layer(entry: dict[str, Any], backend: Backend) -> Layer:
    kind = entry["layer"]
    if kind == "linear":
        start = {"weight": np.zeros((entry["inputs"], entry["outputs"]))}
        if entry["bias"]:
            start["bias"] = np.zeros(entry["outputs"])
        return Linear(entry["inputs"], entry["outputs"], backend=backend, start=start)
    if kind == "sine":
        return Sine(entry["omega_0"], backend=backend)
    if kind in FUNCTIONS:
        return Activation(kind, backend=backend)
    raise UnknownName("layer", kind, ("linear", "sine", *FUNCTIONS))


def _check_sizes(sizes: Sequence[int]) -> None:
    if np.ndim(sizes) != 1 or len(sizes) < 2 or any(int(size) != size or size < 1 for size in sizes):
        raise ShapeError(f"sizes are whole numbers, at least inputs and outputs, for example [6, 12, 1]; not {sizes!r}")
