"""The training loop of a small network, whole: Python is called again after many steps.

A network comes as `layers`, a row each: inputs, units, the activation's place in ACTIVATIONS of chain.py,
where its weights and its bias start in `parameters` and `gradients` (-1 for no bias), and where its two arrays
(units, rows) start in `work`: values, and slopes, which dLoss/dz replaces on the way back.
"""

from __future__ import annotations

import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from nnlab.engines.compiled import activations
from nnlab.engines.compiled import layers as passes
from nnlab.engines.compiled.activations import ONE, ZERO, F
from nnlab.engines.compiled.jit import OPTIONS, SUMS, Array, compiled
from nnlab.engines.compiled.layers import add_gradients, forward, take_back

TWO, CLIP = F(2), F(1e-7)


@compiled(**OPTIONS)
def weights_of(layer: Array, numbers: Array) -> Any:
    """A layer's weight (inputs, units) and bias, which is empty where there is none, out of parameters or gradients."""
    inputs, units, weight_at, bias_at = layer[0], layer[1], layer[3], layer[4]
    bias = numbers[bias_at : bias_at + units] if bias_at >= 0 else numbers[:0]
    return numbers[weight_at : weight_at + inputs * units].reshape((inputs, units)), bias


@compiled(**OPTIONS)
def array_of(layer: Array, which: int, rows: int, work: Array) -> Any:
    """A layer's values (0), or its slopes and later dLoss/dz (1)."""
    units, start = layer[1], layer[5] + which * layer[1] * rows
    return work[start : start + units * rows].reshape((units, rows))


@compiled(**OPTIONS)
def predict(layers: Array, omegas: Array, parameters: Array, x: Array, work: Array) -> Any:
    """The values of the last layer (units, rows), for x (inputs, rows)."""
    rows = x.shape[1]
    for place in range(len(layers)):
        weight, bias = weights_of(layers[place], parameters)
        a, slope = array_of(layers[place], 0, rows, work), array_of(layers[place], 1, rows, work)
        forward(layers[place, 2], x, weight, bias, omegas[place], a, slope)
        x = a
    return x


@compiled(**OPTIONS)
def cross_entropy(logits: bool, value: Any, target: Any) -> Any:
    """One row's binary cross-entropy and its derivative, of a logit or of a probability."""
    if logits:
        e = math.exp(-abs(value))
        p = (ONE if value >= ZERO else e) / (ONE + e)
        return (value if value > ZERO else ZERO) - value * target + math.log1p(e), p - target
    p = CLIP if value < CLIP else ONE - CLIP if value > ONE - CLIP else value  # NaN stays NaN
    return -target * math.log(p) - (ONE - target) * math.log1p(-p), (p - target) / (p * (ONE - p))


@compiled(**SUMS)
def compare(loss: int, share: Any, count: int, p: Array, y: Array, d: Array) -> float:
    """The loss of the first `count` rows; d, until now the slopes, becomes dLoss/dz, zero in the other rows.

    loss: its place in LOSS_NAMES of chain.py; share: 1, or 1 / number of elements where it is a mean.
    """
    total, twice = 0.0, TWO * share
    d[:, count:] = ZERO
    for unit in range(len(p)):
        if loss <= 1:  # mse, sse
            for t in range(min(count, p.shape[1])):
                error = p[unit, t] - y[unit, t]
                total += error * error
                d[unit, t] *= twice * error
        else:
            for t in range(min(count, p.shape[1])):
                value, step = cross_entropy(loss == 2, p[unit, t], y[unit, t])
                total += value
                d[unit, t] *= share * step
    return float(np.float32(total)) * float(share)  # an overflow shows here as in the other engines


@compiled(**OPTIONS)
def update(optimizer: int, constants: Array, factors: Array, w: Array, g: Array, memories: Array) -> None:
    """optimizer: its place in OPTIMIZERS of chain.py; factors: its own, of this step.

    constants: momentum, or Adam's beta1, 1 - beta1, beta2, 1 - beta2 and epsilon, each rounded once.
    """
    if optimizer == 0:  # SGD
        for i in range(len(w)):
            w[i] -= factors[0] * g[i]
    elif optimizer == 1:  # Momentum
        for i in range(len(w)):
            memories[0, i] = constants[0] * memories[0, i] - factors[0] * g[i]
            w[i] += memories[0, i]
    else:  # Adam
        beta1, rest1, beta2, rest2, epsilon = constants
        for i in range(len(w)):
            memories[0, i] = beta1 * memories[0, i] + rest1 * g[i]
            memories[1, i] = beta2 * memories[1, i] + rest2 * g[i] * g[i]
            w[i] -= factors[1] * memories[0, i] / (math.sqrt(memories[1, i] * factors[0]) + epsilon)


@compiled(**OPTIONS)
def fill(source: Array, picks: Array, tiles: Array) -> None:
    """tiles[i, k, t] = the value in column k of the row picked for place t of tile i."""
    rows = tiles.shape[2]
    for place in range(len(picks)):
        for k in range(source.shape[1]):
            tiles[place // rows, k, place % rows] = source[picks[place], k]


@compiled(**OPTIONS)
def loss_of(net: Any, count: int, x: Array, y: Array) -> float:
    """The loss of the first `count` rows of a tile x (inputs, rows), y (outputs, rows); dLoss/dz goes into `work`."""
    layers, omegas, parameters, _, work, loss, share = net
    top = layers[len(layers) - 1]
    p = predict(layers, omegas, parameters, x, work)
    return compare(loss, share, count, p, y, array_of(top, 1, x.shape[1], work))


@compiled(**OPTIONS)
def send_back(net: Any, x: Array) -> None:
    """Add a tile's gradients, from the top layer's dLoss/dz down."""
    layers, _, parameters, gradients, work, _, _ = net
    rows, top = x.shape[1], len(layers) - 1
    row = work[len(work) - rows :].reshape((1, rows))
    for place in range(top, -1, -1):
        d = array_of(layers[place], 1, rows, work)
        inputs = array_of(layers[place - 1], 0, rows, work) if place > 0 else x
        if place < top:
            weight, _ = weights_of(layers[place + 1], parameters)
            take_back(weight, array_of(layers[place + 1], 1, rows, work), d, row)
        weight_sum, bias_sum = weights_of(layers[place], gradients)
        add_gradients(inputs, d, weight_sum, bias_sum)


def _kept(sources: int) -> Any:
    """The two doors. Numba keeps what it compiles on disk, and takes it again while this file and `sources` agree."""

    @compiled(**OPTIONS, cache=True)
    def train(net: Any, how: Any, data: Any, losses: Array) -> None:
        """Take len(losses) steps.

        net: layers, omegas, parameters, gradients, work, loss, share. how: optimizer, constants, factors (a row a
        step), memories. data: all of x and y, the rows picked for each step, and tiles of x and y, which already hold
        all rows where none are picked; count, the rows of a step.
        """
        _ = sources
        parameters, gradients = net[2], net[3]
        optimizer, constants, factors, memories = how
        all_x, all_y, picks, x, y, count = data
        for step in range(len(losses)):
            if picks.shape[1] > 0:
                fill(all_x, picks[step], x)
                fill(all_y, picks[step], y)
            gradients[:] = ZERO
            total = 0.0
            for tile in range(len(x)):
                total += loss_of(net, count - tile * x.shape[2], x[tile], y[tile])
                send_back(net, x[tile])
            losses[step] = total
            update(optimizer, constants, factors[step], parameters, gradients, memories)

    @compiled(**OPTIONS, cache=True)
    def evaluate(net: Any, count: int, x: Array, y: Array) -> float:
        """The loss of the first `count` rows of the tiles x (tiles, inputs, rows) and y (tiles, outputs, rows)."""
        _ = sources
        total = 0.0
        for tile in range(len(x)):
            total += loss_of(net, count - tile * x.shape[2], x[tile], y[tile])
        return total

    return train, evaluate


train, evaluate = _kept(zlib.crc32(b"".join(Path(str(part.__file__)).read_bytes() for part in (activations, passes))))
