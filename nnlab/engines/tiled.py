"""The tiled engine: a tile of rows goes through the whole network while it is in the processor's cache.

The eager engine walks all rows once per operation, so every operation waits for main memory. Here each thread takes a
tile through forward, loss and backward in buffers that it reuses, and adds the tile's gradients to its own sum. Tiles
are dealt to threads by number and the sums are added in order, so tile size and thread count decide the last bits.

With Numba (the extra `fast`), float32 tanh and sine take one pass over a tile with bias and slope, and a small network
goes into one compiled loop instead: see small.py. The last bits then differ from those without Numba.
"""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from nnlab.backends import Array
from nnlab.engines import small
from nnlab.engines.base import Engine, Session, batches, check_arrays, loss_name, model_arrays
from nnlab.engines.stages import Stage, stages
from nnlab.errors import EngineCannot
from nnlab.nn.losses import LOSSES, sse
from nnlab.nn.sequential import Sequential
from nnlab.optim import TrainState

TILE_BYTES = 1024 * 1024  # of the widest layer's output: more would leave the caches, less means more calls a row
LEAST = 64  # rows a tile


class Worker:
    """One thread's way through the network: the shared weights, and buffers of its own.

    gradients: sums over this worker's tiles, by the model's names; part: one tile's, in the same order.
    """

    def __init__(self, state: TrainState, tile: int) -> None:
        self.state = state
        self.sum, self.gradients = _flat(state.model)
        self.part, parts = _flat(state.model)
        self.stages: list[Stage] = stages(state.model, tile, parts)
        self.total = 0.0

    def clear(self) -> None:
        """Begin a new sum over tiles."""
        self.total = 0.0
        self.sum.fill(0.0)

    def forward(self, x: np.ndarray) -> np.ndarray:
        for stage in self.stages:
            x = stage.forward(x)
        return x

    def add(self, x: np.ndarray, y: np.ndarray, share: float) -> None:
        """Add one tile's loss and gradients, scaled by its share of the whole."""
        loss, gradient = self.state.loss(self.forward(x), y)
        self.total += share * float(loss)
        gradient *= share
        for stage in reversed(self.stages):
            gradient = stage.backward(gradient)
        self.sum += self.part


def _flat(model: Sequential) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """One array for all parameters' gradients, and its pieces by name."""
    flat = np.zeros(sum(value.size for value in model.parameters.values()), model.backend.dtype)
    pieces, start = {}, 0
    for name, value in model.parameters.items():
        pieces[name] = flat[start : start + value.size].reshape(value.shape)
        start += value.size
    return flat, pieces


class TiledSession(Session):
    """Tiles over threads, with BLAS held to one thread in each."""

    def __init__(self, state: TrainState, x: Array, y: Array, tile: int, threads: int) -> None:
        self.state, self.x, self.y, self.tile = state, x, y, tile
        self.arrays = model_arrays(state)
        self.workers = [Worker(state, tile) for _ in range(threads)]
        self.libraries = ThreadpoolController()  # finding them takes longer than many a step

    def advance(self, n: int) -> Array:
        state = self.state
        _check_loss(state)
        check_arrays(self.arrays, model_arrays(state))
        losses = np.empty(n, dtype=state.model.backend.dtype)
        with self._threads() as pool:
            for i, rows in enumerate(batches(state, len(self.x), n)):
                if self.stop():
                    return losses[:i]
                losses[i] = self._gradients(pool, rows)
                state.optimizer.update(state.model.parameters, state.model.gradients, state.rate(state.step))
                state.step += 1
        return losses

    def evaluate(self) -> Array:
        rows, many = len(self.x), len(self.workers)
        tiles = list(self._tiles(rows))

        def parts(number: int) -> list[float]:
            forward, loss = self.workers[number].forward, self.state.loss
            mine = tiles[number::many]
            with np.errstate(over="ignore", invalid="ignore"):  # a thread has its own; fit checks the loss
                return [float(loss(forward(self.x[tile]), self.y[tile])[0]) * self._share(tile, rows) for tile in mine]

        with self._threads() as pool:
            found = list(pool.map(parts, range(many)))
        total = sum(found[i % many][i // many] for i in range(len(tiles)))  # in order, however many threads
        return np.asarray(total, dtype=self.state.model.backend.dtype)

    @contextmanager
    def _threads(self) -> Iterator[ThreadPoolExecutor]:
        """A thread for each worker, and one for BLAS in each."""
        with ThreadPoolExecutor(len(self.workers)) as pool, self.libraries.limit(limits=1, user_api="blas"):
            yield pool

    def _gradients(self, pool: ThreadPoolExecutor, rows: np.ndarray | None) -> float:
        """Fill the model's gradients from all tiles; the loss."""
        list(pool.map(lambda number: self._run(number, rows), range(len(self.workers))))
        for name, gradient in self.state.model.gradients.items():
            np.copyto(gradient, self.workers[0].gradients[name])
            for worker in self.workers[1:]:
                np.add(gradient, worker.gradients[name], out=gradient)
        return sum(worker.total for worker in self.workers)

    def _run(self, number: int, rows: np.ndarray | None) -> None:
        """Worker `number` takes every tile whose number is its own, counted round."""
        worker, count = self.workers[number], len(self.x) if rows is None else len(rows)
        worker.clear()
        with np.errstate(over="ignore", invalid="ignore"):  # the loss is checked where it is read
            for tile in list(self._tiles(count))[number :: len(self.workers)]:
                taken = tile if rows is None else rows[tile]
                worker.add(self.x[taken], self.y[taken], self._share(tile, count))

    def _tiles(self, rows: int) -> Iterator[slice]:
        return (slice(start, min(start + self.tile, rows)) for start in range(0, rows, self.tile))

    def _share(self, tile: slice, rows: int) -> float:
        return 1.0 if self.state.loss is sse else (tile.stop - tile.start) / rows


class Tiled(Engine):
    """Tiles of rows through the whole network, on the host's cores.

    tile: rows a tile; None fits the widest layer into the cache. threads: None takes every core this process may use.
    With both None, and Numba, small float32 networks run in a compiled loop without tiles.
    """

    name = "tiled"

    def __init__(self, *, tile: int | None = None, threads: int | None = None) -> None:
        for name, value in (("tile", tile), ("threads", threads)):
            whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
            if value is not None and (not whole or value < 1):
                raise ValueError(f"{name} must be a whole number from 1, or None, not {value!r}")
        self.tile, self.threads = tile and int(tile), threads and int(threads)

    @property
    def settings(self) -> dict[str, Any]:
        both = {"tile": self.tile, "threads": self.threads}
        return {name: value for name, value in both.items() if value is not None}

    def prepare(self, state: TrainState, x: Array, y: Array) -> Session:
        model = state.model
        if not model.backend.is_host:
            raise EngineCannot(
                f"the tiled engine runs on the host, and this model lives on {model.backend.home}: use engine='graph' "
                "or 'fused'"
            )
        _check_loss(state)
        if self.tile is None and self.threads is None and small.fits(state, x):
            return small.SmallSession(state, x, y)
        rows = state.batch_size or len(x)
        if self.tile is not None:
            tile = min(self.tile, rows)
            threads = min(self.threads or cores(), math.ceil(rows / tile))
        else:
            widest = max(value.shape[-1] for value in model.parameters.values())
            most = max(LEAST, TILE_BYTES // (widest * model.backend.dtype.itemsize))
            threads = min(self.threads or cores(), math.ceil(rows / LEAST))
            tile = math.ceil(rows / (threads * math.ceil(rows / (threads * most))))  # as many for every thread
        return TiledSession(state, x, y, tile, threads)


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux; elsewhere a process may use them all
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _check_loss(state: TrainState) -> None:
    if state.loss not in LOSSES.values():
        raise EngineCannot(
            f"the tiled engine adds up losses of nnlab.nn.losses; it does not know {loss_name(state.loss)}: "
            "use engine='eager'"
        )
