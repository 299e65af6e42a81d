"""A network as a chain of linear layers: what engines with kernels of their own know, and what they refuse, by name."""

from __future__ import annotations

from dataclasses import dataclass

from nnlab.engines.base import loss_name
from nnlab.errors import EngineCannot
from nnlab.nn.layers import Activation, Layer, Linear, Sine
from nnlab.nn.losses import LOSSES, Loss
from nnlab.nn.sequential import Sequential
from nnlab.optim import SGD, Adam, Momentum, Optimizer

# The kernels know each of these by its place.
ACTIVATIONS = ("linear", "tanh", "sigmoid", "relu", "leaky_relu", "sine")
LOSS_NAMES = ("mse", "sse", "bce_with_logits", "bce")
OPTIMIZERS: tuple[type[Optimizer], ...] = (SGD, Momentum, Adam)


@dataclass(frozen=True)
class Chain:
    """A network of linear layers, each with the activation behind it.

    widths: inputs, then the outputs of each layer; the other three have one entry a layer.
    """

    widths: tuple[int, ...]
    biases: tuple[int, ...]
    activations: tuple[str, ...]
    omegas: tuple[float, ...]

    @property
    def parameters(self) -> int:
        """How many numbers are trained."""
        return sum((a + bias) * b for a, b, bias in zip(self.widths, self.widths[1:], self.biases, strict=False))

    def __str__(self) -> str:
        return "-".join(str(width) for width in self.widths)


def chain(model: Sequential) -> Chain:
    """The network as a chain. Raises EngineCannot, naming the layer that does not fit.

    Networks and layers derived from these classes do not fit either: they may compute anything.
    """
    if type(model) is not Sequential:
        raise EngineCannot(f"{type(model).__name__} may compute what Sequential does not: use engine='eager'")
    widths: list[int] = []
    biases, activations, omegas = [], [], []
    before: Layer | None = None
    for place, layer in enumerate(model.layers):
        if type(layer) is Linear:
            widths = widths or [layer.inputs]
            widths.append(layer.outputs)
            biases.append(int("bias" in layer.parameters))
            activations.append("linear")
            omegas.append(0.0)
        elif type(layer) is Sine and type(before) is Linear:
            activations[-1], omegas[-1] = "sine", float(layer.omega_0)
        elif type(layer) is Activation and type(before) is Linear:
            if layer.name not in ACTIVATIONS:
                raise EngineCannot(f"the fused engine does not know the activation of layer {place}, {layer.name!r}")
            activations[-1] = layer.name
        else:
            raise EngineCannot(
                f"the fused engine takes linear layers, each with one activation behind it; layer {place}, "
                f"{type(layer).__name__}, does not fit: use engine='graph' or 'eager'"
            )
        before = layer
    return Chain(tuple(widths), tuple(biases), tuple(activations), tuple(omegas))


def loss_number(loss: Loss) -> int:
    """The kernels' number of a loss. Raises EngineCannot for one they do not know."""
    for number, name in enumerate(LOSS_NAMES):
        if loss is LOSSES[name]:
            return number
    known = ", ".join(LOSS_NAMES)
    raise EngineCannot(
        f"the fused engine knows the losses {known}, not {loss_name(loss)}: use engine='graph' or 'eager'"
    )


def optimizer_number(optimizer: Optimizer) -> int:
    """The kernels' number of an optimiser. Raises EngineCannot for one they do not know."""
    if type(optimizer) not in OPTIMIZERS:
        known = ", ".join(kind.__name__ for kind in OPTIMIZERS)
        raise EngineCannot(
            f"the fused engine knows the optimisers {known}, not {type(optimizer).__name__}: use engine='eager'"
        )
    return OPTIMIZERS.index(type(optimizer))


def optimizer_settings(optimizer: Optimizer) -> dict[str, float]:
    """The constants of an optimiser by the kernels' names, as Python floats; what it does not have is 0."""
    names = ("momentum", "beta1", "beta2", "epsilon")
    momentum, beta1, beta2, epsilon = (float(getattr(optimizer, name, 0.0)) for name in names)
    return {
        "DECAY": momentum,
        "BETA1": beta1,
        "REST1": 1.0 - beta1,
        "BETA2": beta2,
        "REST2": 1.0 - beta2,
        "EPSILON": epsilon,
    }
