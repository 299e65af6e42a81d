"""Small networks on the host: the whole training loop compiled by Numba, where that is installed (extra `fast`).

A step of a small network costs NumPy a hundred calls of a microsecond each; the compiled loop has none. It runs on one
core, without BLAS, in float32. The first run on a machine compiles for some ten seconds; Numba keeps the result.
"""

from __future__ import annotations

import math

import numpy as np

from nnlab.backends import Array
from nnlab.engines import base, compiled
from nnlab.engines.base import Session, check_arrays, model_arrays
from nnlab.engines.chain import ACTIVATIONS, Chain, chain, loss_number, optimizer_number
from nnlab.errors import EngineCannot
from nnlab.nn.losses import sse
from nnlab.optim import Adam, Momentum, Optimizer, TrainState

LANES, LINE = 16, 64  # rows are padded to a multiple of a vector's, and arrays begin at one of a cache line's bytes
TILE = 512  # rows at a time, at most: the arrays of a 64 wide layer then stay in the second-level cache
LARGEST = 4_000_000  # rows times weights, from where cores with BLAS are faster
SLICE_SECONDS = 0.02  # between two looks at `stop`, about
STEP_SECONDS, RATE = 5e-6, 25e9  # of the smallest network, and floating-point operations a second of larger ones


def fits(state: TrainState, x: Array, *, largest: int = LARGEST) -> bool:
    """Whether the compiled loop takes this run, of up to `largest` rows times weights."""
    if not compiled.have_numba() or state.model.backend.dtype != np.float32:
        return False
    try:
        network = chain(state.model)
        loss_number(state.loss)
        optimizer_number(state.optimizer)
    except EngineCannot:
        return False
    tiles, width = _tiles(state.batch_size or len(x))
    return tiles * width * network.parameters <= largest


class SmallSession(Session):
    """Rows and parameters in the layout of the compiled loop; the model has its own up to date after each `advance`.

    Sums are added in one order, so a run's bits depend on the processor alone, however it is cut.
    """

    def __init__(self, state: TrainState, x: Array, y: Array) -> None:
        from nnlab.engines.compiled import loop  # imports Numba

        self.loop, self.state, self.x, self.y = loop, state, np.ascontiguousarray(x), np.ascontiguousarray(y)
        self.arrays = model_arrays(state)
        network = chain(state.model)
        self.count = state.batch_size or len(x)
        self.tiles = tuple(_empty_tiles(part, self.count) for part in (x, y))
        if state.batch_size is None:
            self._fill(self.tiles)
        step_seconds = STEP_SECONDS + 6 * self.count * network.parameters / RATE
        ahead = math.inf if state.batch_size is None else base.TABLE / state.batch_size
        self.few = max(1, int(min(SLICE_SECONDS / step_seconds, ahead)))  # steps a slice
        size = sum(value.size for value in state.model.parameters.values())
        self.parameters, self.memories = np.zeros(size, np.float32), np.zeros((2, size), np.float32)
        self.gradients = np.zeros(size, np.float32)
        layers, work = _layers(network)
        omegas = np.array(network.omegas, np.float32)
        self.net = (layers, omegas, self.parameters, self.gradients, _aligned((work,)))

    def advance(self, n: int) -> Array:
        check_arrays(self.arrays, model_arrays(self.state))
        losses, done = np.empty(n, np.float32), 0
        self._copy(to_model=False)
        while done < n and not self.stop():
            steps = min(self.few, n - done)
            self._run(losses[done : done + steps])
            done += steps
        self._copy(to_model=True)
        return losses[:done]

    def evaluate(self) -> Array:
        self._copy(to_model=False)
        tiles = tuple(_empty_tiles(part, len(part)) for part in (self.x, self.y))
        self._fill(tiles)
        loss = self.loop.evaluate(self._net(len(self.x)), len(self.x), *tiles)
        return np.asarray(loss, np.float32)

    def _run(self, losses: np.ndarray) -> None:
        state, steps = self.state, len(losses)
        optimizer, factors = state.optimizer, np.array(state.factors(steps), np.float32)
        picks = state.batches(len(self.x), state.step, steps)
        picks = np.empty((steps, 0), np.int64) if picks is None else picks
        how = (optimizer_number(optimizer), _constants(optimizer), factors, self.memories)
        self.loop.train(self._net(self.count), how, (self.x, self.y, picks, *self.tiles, self.count), losses)
        state.step += steps
        optimizer.step += steps

    def _net(self, count: int) -> tuple[object, ...]:
        share = 1.0 if self.state.loss is sse else 1.0 / (count * self.y.shape[1])
        return (*self.net, loss_number(self.state.loss), np.float32(share))

    def _fill(self, tiles: tuple[np.ndarray, ...]) -> None:
        for part, tiled in zip((self.x, self.y), tiles, strict=True):
            self.loop.fill(part, np.arange(len(part)), tiled)

    def _copy(self, *, to_model: bool) -> None:
        """Parameters and the optimiser's memories, from the model into the flat arrays or back."""
        state, pairs = self.state, [(self.parameters, self.state.model.parameters)]
        for row, memory in zip(self.memories, state.optimizer.memories, strict=False):
            pairs.append((row, {name: state.optimizer.arrays[f"{memory}.{name}"] for name in state.model.parameters}))
        for flat, arrays in pairs:
            start = 0
            for array in arrays.values():
                piece = flat[start : start + array.size].reshape(array.shape)
                np.copyto(*((array, piece) if to_model else (piece, array)))
                start += array.size


def _constants(optimizer: Optimizer) -> np.ndarray:
    """What loop.py wants of an optimiser as it is set now."""
    constants = np.zeros(5, np.float32)
    if isinstance(optimizer, Momentum):
        constants[0] = optimizer.momentum
    if isinstance(optimizer, Adam):
        beta1, beta2 = optimizer.beta1, optimizer.beta2
        constants[:] = beta1, 1.0 - beta1, beta2, 1.0 - beta2, optimizer.epsilon
    return constants


def _tiles(rows: int) -> tuple[int, int]:
    """How many tiles, and rows a tile: even shares, rounded up to whole vectors."""
    tiles = math.ceil(rows / TILE)
    return tiles, math.ceil(rows / tiles / LANES) * LANES


def _empty_tiles(part: np.ndarray, rows: int) -> np.ndarray:
    tiles, width = _tiles(rows)
    return _aligned((tiles, part.shape[1], width))


def _aligned(shape: tuple[int, ...]) -> np.ndarray:
    """Zeros that begin where a cache line does: a vector across two lines takes twice as long to load."""
    size = math.prod(shape)
    room = np.zeros(size + LANES, np.float32)
    start = -room.ctypes.data % LINE // room.itemsize
    return room[start : start + size].reshape(shape)


def _layers(network: Chain) -> tuple[np.ndarray, int]:
    """The table of layers that loop.py describes, and how many numbers `work` needs."""
    table, at, work = [], 0, 0
    for inputs, units, bias, name in zip(
        network.widths, network.widths[1:], network.biases, network.activations, strict=False
    ):
        bias_at = at + inputs * units if bias else -1
        table.append((inputs, units, ACTIVATIONS.index(name), at, bias_at, work))
        at += (inputs + bias) * units
        work += 2 * units * TILE
    return np.array(table, np.int64), work + TILE
