"""Where weights start: drawn on the host in float64, so that every backend starts from the same numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from nnlab.errors import UnknownName

Initialiser = Callable[[np.random.Generator, int, int], np.ndarray]


def xavier(rng: np.random.Generator, fan_in: int, fan_out: int) -> np.ndarray:
    """(fan_in, fan_out) from U(±sqrt(6 / (fan_in + fan_out))): keeps the spread of signals and gradients even.

    Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks", 2010, eq. 16.
    """
    bound = math.sqrt(6.0 / (fan_in + fan_out))
    return rng.uniform(-bound, bound, (fan_in, fan_out))


def he(rng: np.random.Generator, fan_in: int, fan_out: int) -> np.ndarray:
    """(fan_in, fan_out) from N(0, 2 / fan_in): makes up for the half that ReLU sets to zero.

    He et al., "Delving deep into rectifiers", 2015, eq. 10.
    """
    return rng.normal(0.0, math.sqrt(2.0 / fan_in), (fan_in, fan_out))


def normal(rng: np.random.Generator, fan_in: int, fan_out: int) -> np.ndarray:
    """(fan_in, fan_out) from N(0, 1), whatever the size: what many first attempts do."""
    return rng.normal(0.0, 1.0, (fan_in, fan_out))


INITIALISERS: dict[str, Initialiser] = {"xavier": xavier, "he": he, "normal": normal}
_FITTING = {"relu": "he", "leaky_relu": "he"}


def generator(rng: object) -> np.random.Generator:
    """`rng` itself. Raises TypeError unless it is a generator, which a seed alone is not."""
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"weights are drawn at random: pass rng=np.random.default_rng(seed), not rng={rng!r}")
    return rng


def initialiser(init: str | Initialiser | None, *, activation: str) -> Initialiser:
    """The initialiser by name or as given; None picks He for the ReLUs and Xavier for the rest."""
    if callable(init):
        return init
    name = _FITTING.get(activation, "xavier") if init is None else init
    if name not in INITIALISERS:
        raise UnknownName("initialiser", name, INITIALISERS)
    return INITIALISERS[name]


def siren_weight(rng: np.random.Generator, fan_in: int, fan_out: int, *, first: bool, omega_0: float) -> np.ndarray:
    """(fan_in, fan_out) from U(±1 / fan_in) for the first layer, U(±sqrt(6 / fan_in) / omega_0) for the others.

    Sitzmann et al., "Implicit neural representations with periodic activation functions", 2020, section 3.2 and
    supplement 1.5: with this start the arguments of every hidden sine have standard deviation near 1.
    """
    bound = 1.0 / fan_in if first else math.sqrt(6.0 / fan_in) / omega_0
    return rng.uniform(-bound, bound, (fan_in, fan_out))


def siren_bias(rng: np.random.Generator, fan_in: int, fan_out: int) -> np.ndarray:
    """(fan_out,) from U(±1 / sqrt(fan_in))."""
    bound = 1.0 / math.sqrt(fan_in)
    return rng.uniform(-bound, bound, fan_out)
