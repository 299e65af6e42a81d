"""Activations compiled by Numba: of one number, and of a tile of a large network between two products by BLAS.

All numbers are float32, constants too, since a Python float would widen the arithmetic.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nnlab.engines.compiled.jit import OPTIONS, Array, compiled
from nnlab.nn.activations import LEAK

F = np.float32
ZERO, HALF, ONE, FOUR, LEFT = F(0), F(0.5), F(1), F(4), F(LEAK)

# tanh x = x p(x^2) / q(x^2), fitted on [0, 7.9] by weighted least squares (Lawson, 1961): within 4e-7
TANH_END = F(7.9)  # beyond it tanh differs from 1 by less
P0, P1, P2, P3 = F(4069599.25), F(525901.8), F(11999.27), F(46.453224)
Q0, Q1, Q2, Q3 = F(4069601.5), F(1882427.0), F(96870.82), F(970.1748)  # and 1

# x = k pi + r with pi in three parts (Cody and Waite, 1980), then polynomials in r^2 by least squares: within 2e-7
PER_PI, PI1, PI2, PI3 = F(1 / math.pi), F(3.140625), F(9.67502593994140625e-4), F(1.509957990978376e-7)
S1, S2, S3, S4, S5 = F(-0.166666666), F(8.33333129e-3), F(-1.98408906e-4), F(2.75264621e-6), F(-2.39068105e-8)
C1, C2, C3, C4, C5 = F(-0.499999995), F(4.16666403e-2), F(-1.38883983e-3), F(2.4761654e-5), F(-2.60734497e-7)


@compiled(**OPTIONS)
def tanh(x: Any, omega_0: Any) -> Any:
    """tanh x and its slope, as the four below, which have no use for omega_0."""
    x = TANH_END if x > TANH_END else x
    x = -TANH_END if x < -TANH_END else x
    s = x * x
    p = ((P3 * s + P2) * s + P1) * s + P0
    q = (((s + Q3) * s + Q2) * s + Q1) * s + Q0
    a = x * p / q
    return a, ONE - a * a


@compiled(**OPTIONS)
def sine(z: Any, omega_0: Any) -> Any:
    """sin(omega_0 z) and its slope."""
    x = omega_0 * z
    k = np.floor(x * PER_PI + HALF)
    r = ((x - k * PI1) - k * PI2) - k * PI3
    half = k * HALF
    sign = ONE - FOUR * (half - np.floor(half))  # sin and cos of r + k pi change sign with every k
    s = r * r
    a = sign * (r + r * s * ((((S5 * s + S4) * s + S3) * s + S2) * s + S1))
    return a, omega_0 * (sign * (ONE + s * ((((C5 * s + C4) * s + C3) * s + C2) * s + C1)))


@compiled(**OPTIONS)
def sigmoid(z: Any, omega_0: Any) -> Any:
    e = math.exp(-abs(z))
    a = (ONE if z >= ZERO else e) / (ONE + e)
    return a, a * (ONE - a)


@compiled(**OPTIONS)
def relu(z: Any, omega_0: Any) -> Any:
    return (ZERO if z <= ZERO else z), (ONE if z > ZERO else ZERO)


@compiled(**OPTIONS)
def leaky_relu(z: Any, omega_0: Any) -> Any:
    return (LEFT * z if z <= ZERO else z), (ONE if z > ZERO else LEFT)


@compiled(**OPTIONS)
def linear(z: Any, omega_0: Any) -> Any:
    return z, ONE


# ---- a tile (rows, units) of a large network, between two products by BLAS


@compiled(**OPTIONS, cache=True)
def tanh_tile(z: Array, bias: Array) -> None:
    """z <- tanh(z + bias)."""
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            z[i, j] = tanh(z[i, j] + bias[j], ONE)[0]


@compiled(**OPTIONS, cache=True)
def sine_tile(z: Array, bias: Array, omega_0: Any, a: Array) -> None:
    """a = sin(omega_0 (z + bias)); z <- its slope."""
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            a[i, j], z[i, j] = sine(z[i, j] + bias[j], omega_0)


@compiled(**OPTIONS, cache=True)
def tanh_slope_tile(gradient: Array, a: Array, sums: Array) -> None:
    """gradient <- gradient times the slope at a = tanh(z), and sums <- the sums of its columns."""
    sums[:] = ZERO
    for i in range(gradient.shape[0]):
        for j in range(gradient.shape[1]):
            gradient[i, j] *= ONE - a[i, j] * a[i, j]
            sums[j] += gradient[i, j]


@compiled(**OPTIONS, cache=True)
def slope_tile(gradient: Array, slope: Array, sums: Array) -> None:
    """gradient <- gradient times slope, and sums <- the sums of its columns."""
    sums[:] = ZERO
    for i in range(gradient.shape[0]):
        for j in range(gradient.shape[1]):
            gradient[i, j] *= slope[i, j]
            sums[j] += gradient[i, j]


@compiled(**OPTIONS, cache=True)
def column_slope_tile(column: Array, weight: Array, slope: Array, sums: Array) -> None:
    """slope <- dLoss/dz below a layer of one output: its column weight^T times slope, and sums <- its columns' sums."""
    sums[:] = ZERO
    for i in range(slope.shape[0]):
        for j in range(slope.shape[1]):
            slope[i, j] *= column[i, 0] * weight[j]
            sums[j] += slope[i, j]
