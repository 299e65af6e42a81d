"""One simulated GPU: its memory, its timeline, its counts, and what it is recording."""

from __future__ import annotations

import contextvars
import itertools
import os
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from nnlab.backends.sim import forks
from nnlab.backends.sim.device import load_device
from nnlab.backends.sim.pools import Block, Lease, Pool, make_pool
from nnlab.backends.sim.timeline import StreamState, Timeline
from nnlab.errors import BackendUnavailable, CaptureError, DeviceOutOfMemory

if TYPE_CHECKING:
    from nnlab.backends.sim.capture import SimGraph

Redo = Callable[[np.ndarray], object]
_numbers = itertools.count()


class Gpu:
    """A simulated GPU. Arrays name it as their home; two of them are two homes.

    Each operation on arrays ends in one of `launch`, `upload`, `download` or `wait`, which count it, move the two
    lanes of modelled time on and, while a receipt is open, write events.
    """

    array_type: type  # set by array.py: the class of this home's arrays

    def __init__(self, device: str, memory: int, pool: str, release_threshold: int) -> None:
        if forks.process.forked:
            self.refuse_fork()
        forks.process.watch()
        self.number = next(_numbers)
        self.device = load_device(device)
        self.limit = memory
        self.in_arrays = self.peak = 0
        self.graph_pools: list[weakref.ref[Pool]] = []  # memory that captured graphs keep to themselves
        self.pool = make_pool(pool, self, release_threshold)
        self.timeline = Timeline(int(self.device.host["queue"]))
        self.stream: StreamState = self.timeline.default
        self.graph: SimGraph | None = None
        self.launches = self.h2d_copies = self.h2d_bytes = self.d2h_copies = self.d2h_bytes = 0
        self.syncs = self.waits = self.allocations = self.pool_hits = 0
        self.deferred: list[tuple[np.ndarray, np.ndarray]] = []  # downloads that nobody has waited for: (out, values)
        self._compiled: set[tuple[str, str]] = set()
        self._host = self.device.host
        self._pool_seconds: float = 0.0 if pool == "none" else self.device.allocate[pool]

    @property
    def home(self) -> str:
        return f"simulated GPU {self.number} ({self.device.name})"

    @property
    def in_graphs(self) -> int:
        """Bytes of the captured graphs, which keep all their memory as long as they live."""
        self.graph_pools = [pool for pool in self.graph_pools if pool() is not None]
        return sum(pool.held for reference in self.graph_pools if (pool := reference()) is not None)

    @property
    def used(self) -> int:
        """Bytes in use, by arrays and by graphs."""
        return self.in_arrays + self.in_graphs if self.graph_pools else self.in_arrays

    @property
    def held(self) -> int:
        """Bytes taken from the driver, in use or not."""
        return self.pool.held + self.in_graphs if self.graph_pools else self.pool.held

    def wrap(self, data: np.ndarray, lease: Lease | None = None) -> Any:
        """The device array of `data`: in new memory, or in the memory of `lease` where given."""
        array: Any = object.__new__(self.array_type)
        array._data, array._gpu, array._lease = data, self, lease or self.allocate(data.nbytes)
        return array

    def result(self, data: np.ndarray, kind: str, name: str, seconds: float, redo: Redo | None = None) -> Any:
        """A kernel's result as a new device array. redo(out) computes it again, for a captured graph."""
        array = self.wrap(data)
        self.launch(kind, name, seconds, data.dtype.char)
        if self.graph is not None:
            data.fill(0)  # nothing has run yet
            if redo is not None:
                self.graph.actions.append(lambda: redo(data))
        return array

    def allocate(self, nbytes: int) -> Lease | None:
        """Memory for an array; an empty one needs none. Raises DeviceOutOfMemory."""
        if forks.process.forked:
            self.refuse_fork()
        if nbytes == 0:
            return None
        pool = self.pool if self.graph is None else self.graph.pool
        block, hit = pool.take(nbytes, self.stream.number)
        if hit:
            self.pool_hits += 1
        else:
            self.allocations += 1
        if pool is self.pool:
            self.in_arrays += block.size
        if self.used > self.peak:
            self.peak = self.used
        seconds = self._pool_seconds
        if not hit:
            seconds += self.device.driver_block(block.size)
        self.timeline.spend("allocate", "pool hit" if hit else "allocate", seconds, nbytes)
        return Lease(block, nbytes)

    def freed(self, block: Block, *, to_driver: bool) -> None:
        """A pool got a block back. Giving memory back to the driver waits until the device is idle."""
        if block.pool is self.pool:
            self.in_arrays -= block.size
        if to_driver:
            self.timeline.host = self.timeline.idle()

    def launch(self, kind: str, name: str, seconds: float, char: str = "f") -> None:
        """The host queues a kernel: `kind` says what that costs the host, `seconds` what it costs the device."""
        if forks.process.forked:
            self.refuse_fork()
        timeline = self.timeline
        key = (name, char)
        if key not in self._compiled:
            self._compiled.add(key)
            if kind in self.device.compile:
                timeline.spend("compile", name, self.device.compile[kind])
        if self.graph is not None:
            timeline.spend("capture", name, self._host[kind])
            self.graph.nodes.append((name, seconds))
            return
        self.launches += 1
        timeline.launch(name, self._host[kind], seconds, self.stream)

    def launch_graph(self, nodes: list[tuple[str, float]]) -> None:
        """The host queues a captured graph: one launch, all its kernels with short gaps between them."""
        if forks.process.forked:
            self.refuse_fork()
        self.launches += 1
        gap = self.device.kernel["graph_gap"] - self.device.kernel["floor"]
        shorter = [(name, seconds + gap) for name, seconds in nodes]
        self.timeline.launch_graph(shorter, self._host["graph"], self.stream)

    def upload(self, name: str, nbytes: int, *, pinned: bool) -> None:
        """A copy from the host. Small pageable ones are copied aside and do not wait; large ones do."""
        if forks.process.forked:
            self.refuse_fork()
        if self.graph is not None:
            self.refuse_capture(name, "upload before the capture and copy into the buffer outside of it")
        if nbytes == 0:
            return
        self.h2d_copies += 1
        self.h2d_bytes += nbytes
        copy, timeline = self.device.copy, self.timeline
        if pinned:
            timeline.spend("h2d", name, copy["h2d_call"], nbytes)
            timeline.work("h2d", name, nbytes / copy["h2d_pinned"], self.stream, nbytes)
        elif nbytes <= copy["staged_bytes"]:
            timeline.spend("h2d", name, copy["h2d_call"] + nbytes / copy["h2d_staged"], nbytes)
            timeline.work("h2d", name, nbytes / copy["h2d_pinned"], self.stream, nbytes)
        else:
            timeline.spend("h2d", name, copy["h2d_call"], nbytes)
            end = timeline.work("h2d", name, nbytes / copy["h2d_pageable"], self.stream, nbytes)
            self.wait(name, end)

    def download(self, name: str, nbytes: int, *, pinned: bool = False, blocking: bool = True) -> None:
        """A copy to the host; it waits, unless it goes to pinned memory and is asked not to."""
        if forks.process.forked:
            self.refuse_fork()
        if self.graph is not None:
            self.refuse_capture(name, "keep the value on the device and read it after the replay")
        if nbytes == 0:
            return
        self.d2h_copies += 1
        self.d2h_bytes += nbytes
        copy, timeline = self.device.copy, self.timeline
        timeline.spend("d2h", name, copy["d2h_call" if name == "to_host" else "item_call"], nbytes)
        end = timeline.work("d2h", name, nbytes / copy["d2h_pinned" if pinned else "d2h_pageable"], self.stream, nbytes)
        if blocking:
            self.wait(name, end)

    def wait(self, name: str, until: float, call: float = 0.0) -> None:
        """The host waits for the device until a moment of modelled time."""
        self.waits += 1
        self.timeline.wait(name, until, call)
        for out, values in self.deferred:
            np.copyto(out, values)
        self.deferred.clear()
        self.pool.synchronized()

    def synchronize(self, name: str = "synchronize", until: float | None = None) -> None:
        """An explicit wait, for everything or until a moment."""
        if forks.process.forked:
            self.refuse_fork()
        if self.graph is not None:
            self.refuse_capture(name, "synchronize after the replay")
        self.syncs += 1
        self.wait(name, self.timeline.idle() if until is None else until, self._host["synchronize"])

    def out_of_memory(self, size: int) -> NoReturn:
        raise DeviceOutOfMemory(
            f"{self.home} is out of memory: asked {size:,} bytes; used {self.used:,}, held {self.held:,}, "
            f"limit {self.limit:,}. Delete arrays, use smaller batches, or call backend.release_memory()"
        )

    def refuse_capture(self, name: str, instead: str) -> NoReturn:
        raise CaptureError(f"{name} cannot be captured into a graph; {instead}")

    def refuse_fork(self) -> NoReturn:
        raise BackendUnavailable(
            f"{self.home} was made before a fork, and this is the forked process {os.getpid()}: a GPU does not "
            "survive a fork. Start workers with multiprocessing.get_context('spawn') and make the backend inside them"
        )


def quiet() -> np.errstate:
    """A GPU raises no floating-point warnings: overflow is inf, 0/0 is NaN, and nothing is said."""
    return np.errstate(all="ignore")


class Quietly(threading.local):
    """`quietly.run(f, *args)`: f under `quiet()`, several times cheaper. Such calls must not be nested."""

    def __init__(self) -> None:
        context = contextvars.copy_context()
        context.run(np.seterr, all="ignore")
        self.run = context.run


quietly = Quietly()
