"""The mathematics of a network: layers with their backward passes by hand, losses, metrics, gradient checks."""

from nnlab.nn import losses, metrics
from nnlab.nn.activations import sigmoid, softmax
from nnlab.nn.gradient_check import GradientReport, check_gradients, numerical_gradient
from nnlab.nn.layers import Activation, Layer, Linear, Sine
from nnlab.nn.networks import from_config, mlp, siren
from nnlab.nn.sequential import Sequential

__all__ = [
    "Activation",
    "GradientReport",
    "Layer",
    "Linear",
    "Sequential",
    "Sine",
    "check_gradients",
    "from_config",
    "losses",
    "metrics",
    "mlp",
    "numerical_gradient",
    "sigmoid",
    "siren",
    "softmax",
]
