"""What can be wrong with a run before it starts; every complaint names the culprit and the cure."""

from __future__ import annotations

import numpy as np

from nnlab.backends import Array
from nnlab.errors import ShapeError
from nnlab.nn.layers import Activation, Sine
from nnlab.nn.losses import Loss, bce, bce_with_logits
from nnlab.nn.sequential import Sequential
from nnlab.optim import TrainState


def check_run(state: TrainState, x: Array, y: Array) -> None:
    """Raise for arrays that do not fit the network, loss and output that do not fit each other, and bad numbers.

    MixedBackendError, TypeError (dtype), ShapeError, ValueError. Costs one copy of three numbers to the host.
    """
    model, loss = state.model, state.loss
    model.check_input(x)
    model.backend.require_home(y=y)
    if y.dtype != model.backend.dtype:
        raise TypeError(
            f"y is {y.dtype}, the network computes in {model.backend.dtype}; "
            f'convert it: y = backend.asarray(y, dtype="{model.backend.dtype}")'
        )
    if y.shape != (len(x), model.outputs):
        raise ShapeError(
            f"y has shape {y.shape}; {len(x)} rows of x and a network of {model.outputs} outputs need "
            f"({len(x)}, {model.outputs})" + ("; reshape it: y.reshape(-1, 1)" if y.shape == (len(x),) else "")
        )
    if len(x) == 0:
        raise ShapeError("x has no rows; there is nothing to learn from")
    if state.batch_size is not None and state.batch_size > len(x):
        raise ValueError(f"batch_size is {state.batch_size}, but x has only {len(x)} rows")
    _check_output(model, loss)
    _check_numbers(model, loss, x, y)


def _check_output(model: Sequential, loss: Loss) -> None:
    last = model.layers[-1]
    makes_probabilities = isinstance(last, Activation) and last.name == "sigmoid"
    if loss is bce_with_logits and makes_probabilities:
        raise ValueError(
            "bce_with_logits applies the sigmoid itself, and this network ends in one already: "
            'build it with output="linear", or use losses.bce'
        )
    if loss is bce and not makes_probabilities:
        raise ValueError(
            'bce takes probabilities, and this network does not end in a sigmoid: build it with output="sigmoid", '
            "or use losses.bce_with_logits"
        )


def _check_numbers(model: Sequential, loss: Loss, x: Array, y: Array) -> None:
    b = model.backend
    # One small array, so that a device is asked once; max and min pass NaN on.
    numbers = b.to_host(b.xp.stack([b.xp.max(b.xp.abs(x)), b.xp.min(y), b.xp.max(y)]))
    x_size, y_low, y_high = (float(number) for number in numbers)
    for name, array, fine in (("x", x, np.isfinite(x_size)), ("y", y, np.isfinite(y_low) and np.isfinite(y_high))):
        if not fine:
            row = int(np.argmax(~np.isfinite(b.to_host(array)).all(axis=1)))
            raise ValueError(f"{name} holds NaN or infinity, first in row {row}; remove or replace such rows")
    if loss in (bce, bce_with_logits) and not (y_low >= 0.0 and y_high <= 1.0):
        raise ValueError(f"targets of {loss.__name__} must lie in [0, 1]; y runs from {y_low:g} to {y_high:g}")
    sine = next((layer for layer in model.layers if isinstance(layer, Sine)), None)
    if sine is not None and x_size > 1.0 + 1e-6:
        raise ValueError(
            f"x reaches {x_size:g}; a sine network expects coordinates in [-1, 1]: "
            "use nnlab.images.pixel_centres, or scale x"
        )
