"""A layer of a small network, forwards and backwards, compiled by Numba without BLAS.

Arrays are (units, rows), rows a multiple of 16, so that every inner loop runs along the rows in full vectors however
narrow the layer. Inputs are taken by fours, which saves three of four passes over the sums.
"""

from __future__ import annotations

from typing import Any

from nnlab.engines.compiled.activations import ZERO, leaky_relu, linear, relu, sigmoid, sine, tanh
from nnlab.engines.compiled.jit import OPTIONS, SUMS, Array, compiled


@compiled(**OPTIONS)
def weigh(weight: Array, unit: int, start: Any, x: Array, total: Array, place: int) -> None:
    """total[place] = start + the sum over k of weight[k, unit] x[k], without the last four k."""
    rows, k = x.shape[1], len(x) % 4 if len(x) > 3 else 0
    w0, w1, w2 = weight[0, unit], weight[min(1, len(x) - 1), unit], weight[min(2, len(x) - 1), unit]
    if k == 0:
        for t in range(rows):
            total[place, t] = start
    elif k == 1:
        for t in range(rows):
            total[place, t] = start + w0 * x[0, t]
    elif k == 2:
        for t in range(rows):
            total[place, t] = start + w0 * x[0, t] + w1 * x[1, t]
    else:
        for t in range(rows):
            total[place, t] = start + w0 * x[0, t] + w1 * x[1, t] + w2 * x[2, t]
    while k < len(x) - 4:
        w0, w1, w2, w3 = weight[k, unit], weight[k + 1, unit], weight[k + 2, unit], weight[k + 3, unit]
        for t in range(rows):
            total[place, t] += w0 * x[k, t] + w1 * x[k + 1, t] + w2 * x[k + 2, t] + w3 * x[k + 3, t]
        k += 4


@compiled(**OPTIONS)
def last_four(weight: Array, unit: int) -> Any:
    """The last four weights of a unit and their places; where there are fewer, zeros at place 0."""
    end = len(weight) - 1
    w1, w2 = weight[end - 1, unit] if end > 0 else ZERO, weight[end - 2, unit] if end > 1 else ZERO
    w3 = weight[end - 3, unit] if end > 2 else ZERO
    return weight[end, unit], w1, w2, w3, end, max(end - 1, 0), max(end - 2, 0), max(end - 3, 0)


def _forward(activation: Any) -> Any:
    @compiled(**OPTIONS)
    def forward(x: Array, weight: Array, bias: Array, omega_0: Any, a: Array, slope: Array) -> None:
        """a = f(weight^T x + bias), and the slopes there."""
        for unit in range(len(a)):
            weigh(weight, unit, bias[unit] if len(bias) else ZERO, x, slope, unit)
            w0, w1, w2, w3, k0, k1, k2, k3 = last_four(weight, unit)
            for t in range(x.shape[1]):
                z = slope[unit, t] + w0 * x[k0, t] + w1 * x[k1, t] + w2 * x[k2, t] + w3 * x[k3, t]
                a[unit, t], slope[unit, t] = activation(z, omega_0)

    return forward


forward_linear, forward_tanh, forward_sigmoid = _forward(linear), _forward(tanh), _forward(sigmoid)
forward_relu, forward_leaky_relu, forward_sine = _forward(relu), _forward(leaky_relu), _forward(sine)


@compiled(**OPTIONS)
def forward(kind: int, x: Array, weight: Array, bias: Array, omega_0: Any, a: Array, slope: Array) -> None:
    """kind: the activation's place in ACTIVATIONS of chain.py."""
    if kind == 0:
        forward_linear(x, weight, bias, omega_0, a, slope)
    elif kind == 1:
        forward_tanh(x, weight, bias, omega_0, a, slope)
    elif kind == 2:
        forward_sigmoid(x, weight, bias, omega_0, a, slope)
    elif kind == 3:
        forward_relu(x, weight, bias, omega_0, a, slope)
    elif kind == 4:
        forward_leaky_relu(x, weight, bias, omega_0, a, slope)
    else:
        forward_sine(x, weight, bias, omega_0, a, slope)


@compiled(**OPTIONS)
def take_back(weight: Array, d: Array, slope: Array, row: Array) -> None:
    """slope <- dLoss/dz of the layer below: weight d, for d of the layer above, times its slopes.

    In place, because a step waits for the memory behind the first-level cache. row: room for (1, rows).
    """
    across, rows = weight.T, d.shape[1]
    for unit in range(len(slope)):
        if len(d) == 1:
            w0 = weight[unit, 0]
            for t in range(rows):
                slope[unit, t] *= w0 * d[0, t]
            continue
        weigh(across, unit, ZERO, d, row, 0)
        w0, w1, w2, w3, k0, k1, k2, k3 = last_four(across, unit)
        for t in range(rows):
            slope[unit, t] *= row[0, t] + w0 * d[k0, t] + w1 * d[k1, t] + w2 * d[k2, t] + w3 * d[k3, t]


@compiled(**SUMS)
def add_gradients(x: Array, d: Array, weight_sum: Array, bias_sum: Array) -> None:
    """Add a tile's part: weight_sum += x d^T, bias_sum += the sums of d along its rows."""
    rows, rest = d.shape[1], len(x) % 4
    for unit in range(len(d)):
        s = s0 = s1 = s2 = s3 = ZERO
        if rest == 0:
            for t in range(rows):
                s += d[unit, t]
        elif rest == 1:
            for t in range(rows):
                s += d[unit, t]
                s0 += d[unit, t] * x[0, t]
            weight_sum[0, unit] += s0
        elif rest == 2:
            for t in range(rows):
                s += d[unit, t]
                s0 += d[unit, t] * x[0, t]
                s1 += d[unit, t] * x[1, t]
            weight_sum[0, unit] += s0
            weight_sum[1, unit] += s1
        else:
            for t in range(rows):
                s += d[unit, t]
                s0 += d[unit, t] * x[0, t]
                s1 += d[unit, t] * x[1, t]
                s2 += d[unit, t] * x[2, t]
            weight_sum[0, unit] += s0
            weight_sum[1, unit] += s1
            weight_sum[2, unit] += s2
        if len(bias_sum):
            bias_sum[unit] += s
        for k in range(rest, len(x), 4):
            s0 = s1 = s2 = s3 = ZERO
            for t in range(rows):
                s0 += d[unit, t] * x[k, t]
                s1 += d[unit, t] * x[k + 1, t]
                s2 += d[unit, t] * x[k + 2, t]
                s3 += d[unit, t] * x[k + 3, t]
            weight_sum[k, unit] += s0
            weight_sum[k + 1, unit] += s1
            weight_sum[k + 2, unit] += s2
            weight_sum[k + 3, unit] += s3
