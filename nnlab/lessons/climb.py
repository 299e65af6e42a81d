"""The staircase of lesson 16: one training step on the lion cub in every way of the course, slowest first.

All ways train the same network from the same weights on the same pixels: 2-64-64-128-64-32-32-32-1, tanh, a sigmoid at
the end, mean squared error, plain gradient descent on all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from nnlab import nn
from nnlab.backends import Array, Backend, backend
from nnlab.engines import engine
from nnlab.lessons import cub_step
from nnlab.lessons.cub_step import SIZES, layers
from nnlab.optim import SGD, TrainState, constant
from nnlab.tensor import fuse

RATE = 0.5
Net = list[tuple[Array, Array]]
Run = Callable[[int], object]


@dataclass(frozen=True)
class Way:
    """How the step is run.

    home: "host" or "device". pool: the device's. read: the loss is read in every step. sums: column sums as products
    with ones. fused: elementwise work as one launch a layer. graph: captured and replayed. engine: nnlab's, by name.
    """

    label: str
    home: str = "device"
    dtype: str = "float32"
    pool: str = "default"
    read: bool = False
    sums: bool = False
    fused: bool = False
    graph: bool = False
    engine: str | None = None


HOST = (
    Way("NumPy, float64", home="host", dtype="float64"),
    Way("NumPy, float32", home="host"),
    Way("tiled over the cores", home="host", engine="tiled"),
)
DEVICE = (
    Way("port, no pool, loss read", pool="none", read=True),
    Way("loss left there", pool="none"),
    Way("memory pool"),
    Way("sums as products", sums=True),
    Way("elementwise work fused", sums=True, fused=True),
    Way("the step as a graph", sums=True, fused=True, graph=True),
    Way("fused engine, 3xTF32", engine="fused"),
    Way("fused engine, TF32", engine="fused-tf32"),
)
WAYS = HOST + DEVICE


def pieces(home: Backend, *, fused: bool) -> SimpleNamespace:
    """The elementwise work of `step`: as operators, or each function as one launch."""
    xp = home.xp

    def bias_tanh(z: Array, bias: Array) -> Array:
        return xp.tanh(z + bias)

    def bias_sigmoid(z: Array, bias: Array) -> Array:
        return 0.5 + 0.5 * xp.tanh(0.5 * (z + bias))

    def output_error(p: Array, y: Array, share: float) -> tuple[Array, Array]:
        e = p - y
        return e * e, share * e * p * (1.0 - p)

    def tanh_back(gradient: Array, h: Array) -> Array:
        return gradient * (1.0 - h * h)

    def descend(w: Array, slope: Array, rate: float) -> None:
        w -= rate * slope

    made = (bias_tanh, bias_sigmoid, output_error, tanh_back, descend)
    return SimpleNamespace(**{f.__name__: fuse(f) if fused else f for f in made})


def step(home: Backend, work: SimpleNamespace, x: Array, y: Array, net: Net, ones: Array, rate: float = RATE) -> Array:
    """One step with products for the column sums, all its elementwise work in `work`; the loss before it."""
    outputs = [x]
    for i, (w, bias) in enumerate(net):
        last = i == len(net) - 1
        z = home.matmul(outputs[-1], w)
        outputs.append(work.bias_sigmoid(z, bias) if last else work.bias_tanh(z, bias))
    squares, gradient = work.output_error(outputs[-1], y, 2 / len(x))
    for i in reversed(range(len(net))):
        w, bias = net[i]
        slope = home.matmul(outputs[i], gradient, transpose_a=True)
        bias_slope = home.matmul(ones, gradient)
        if i:
            gradient = work.tanh_back(home.matmul(gradient, w, transpose_b=True), outputs[i])
        work.descend(w, slope, rate)
        work.descend(bias, bias_slope, rate)
    return squares.mean()


def flat_layers(home: Backend, sizes: Sequence[int] = SIZES, *, zero: bool = False) -> tuple[Net, Array]:
    """The network in one vector, layer by layer, weight then bias; its (weight, bias) pairs are views of the vector.

    zero: all 0, as a place for slopes; else the usual start.
    """
    start = layers(backend("numpy"), sizes)
    vector = home.asarray(np.concatenate([part.ravel() for layer in start for part in layer]))
    if zero:
        vector.fill(0.0)
    views, taken = [], 0
    for layer in start:
        pair = []
        for part in layer:
            pair.append(vector[taken : taken + part.size].reshape(part.shape))
            taken += part.size
        views.append((pair[0], pair[1]))
    return views, vector


def home_of(way: Way, b: Backend) -> Backend:
    """Where a way runs: on the host, or on b's device with the way's pool."""
    if way.home == "host":
        return backend("numpy", dtype=way.dtype)
    return backend(b.name, pool=way.pool)  # on a card this sets the pool of the whole process


@dataclass
class Climber:
    """A way made ready: `run(steps)` queues so many steps; `net` are the weights that it trains."""

    home: Backend
    run: Run
    net: Net


def ready(way: Way, b: Backend, x: np.ndarray, y: np.ndarray, sizes: Sequence[int] = SIZES) -> Climber:
    """The way on its home, with data x (rows, 2) and y (rows, 1) from the host; nothing has been trained yet."""
    home = home_of(way, b)
    here, there, net = home.asarray(x), home.asarray(y), layers(home, sizes)
    if way.engine is not None:
        return _engine(way.engine, home, here, there, net)
    ones = home.xp.ones((1, len(x)), dtype=home.dtype)
    once: Callable[[], Any]
    if way.fused:
        once = partial(step, home, pieces(home, fused=True), here, there, net, ones)
    else:
        sums = (lambda _, gradient: home.matmul(ones, gradient)) if way.sums else cub_step.sum_rows
        once = partial(cub_step.step, home, here, there, net, sums, rate=RATE)
    if way.graph:
        once = _captured(home, once, net)
    if way.read:
        return Climber(home, lambda steps: [float(once()) for _ in range(steps)], net)
    return Climber(home, partial(_repeat, once), net)


def _repeat(once: Callable[[], Any], steps: int) -> None:
    for _ in range(steps):
        once()


def _captured(home: Backend, once: Callable[[], Any], net: Net) -> Callable[[], Any]:
    """The step as one replay. The run before the capture, which compiles, is undone."""
    kept = [(w.copy(), bias.copy()) for w, bias in net]
    once()
    for (w, bias), (old_w, old_bias) in zip(net, kept, strict=True):
        w[...], bias[...] = old_w, old_bias
    with home.capture() as graph:
        once()
    return graph.replay


def _engine(name: str, home: Backend, x: Array, y: Array, net: Net) -> Climber:
    sizes = [net[0][0].shape[0], *(w.shape[1] for w, _ in net)]
    model = nn.mlp(sizes, output="sigmoid", backend=home, rng=np.random.default_rng(0))
    trained = list(model.parameters.values())
    for value, start in zip(trained, (part for layer in net for part in layer), strict=True):
        value[...] = start.reshape(value.shape)
    state = TrainState(model, nn.losses.mse, SGD(), constant(RATE), steps=10**9, log_every=1)
    state.optimizer.prepare(model.parameters)
    session = engine(name).prepare(state, x, y)
    return Climber(home, session.advance, list(zip(trained[::2], trained[1::2], strict=True)))
