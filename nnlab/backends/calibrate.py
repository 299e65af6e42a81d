"""Measure a card and its host into a device file for the simulated GPU.

It works on any device backend. On a simulated GPU it must find the figures that GPU was made of, which is its test.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from nnlab.backends.base import Backend
from nnlab.backends.sim.device import Device, load_device

Call = Callable[[], object]
Tables = dict[str, dict[str, Any]]
CALLS = 200  # calls in a row: far fewer than the launch queue takes, so the host never waits in between
REPEATS = 5
NODES = 50  # kernels in a graph that is timed for what one of them takes
MIB = 2**20
_NOTHING = 'extern "C" __global__ void nothing(const float* x) {}'


def calibrate(b: Backend, *, base: str = "h200", product: int = 4096) -> Tables:
    """The tables of a device file, measured on `b`.

    What cannot be measured from Python (the length of the launch queue, the first calls of kernels that are compiled
    already, the size of the cache, the time of the shortest kernel) is taken over from the device file `base`.
    product: rows and columns of the large product.
    """
    device = load_device(base)
    allocate = _allocation(b)
    host = dict(device.host) | _host(b, allocate["default"])
    kernel = dict(device.kernel) | _kernels(b, device, product)
    return {
        "host": host,
        "compile": dict(device.compile),
        "allocate": dict(device.allocate) | allocate,
        "copy": dict(device.copy) | _copies(b, allocate["default"]),
        "kernel": kernel,
    }


def device_file(tables: Tables, *, title: str, source: str) -> str:
    """The text of a device file, marked as measured."""
    lines = [f'title = "{title}"', "measured = true", f'source = "{source}"']
    for name, table in tables.items():
        lines += ["", f"[{name}]", *(f"{key} = {_number(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _host(b: Backend, allocation: float) -> dict[str, float]:
    """What the host spends on one call of each kind, without the allocation of its result."""
    xp = b.xp
    x, out = b.asarray(np.ones((64, 64))), xp.empty((64, 64), dtype=b.dtype)
    single, total = x[0, 0], xp.empty((), dtype=b.dtype)
    column = b.asarray(np.linspace(-1, 1, 1000))
    index, negative = b.asarray(np.arange(0, 1000, 2)), column < 0
    draws = xp.random.default_rng(0)
    nothing = b.raw_kernel(_NOTHING, "nothing", reference=lambda x: None)
    found = {
        "ufunc": _queued(b, lambda: xp.multiply(x, x, out=out)),
        "reduction": _queued(b, lambda: xp.sum(x, out=total)),
        "product": _queued(b, lambda: x @ x) - allocation,
        "matmul": _queued(b, lambda: b.matmul(x, x, out=out)),
        "raw_kernel": _queued(b, lambda: nothing[1, 32](out)),
        "memset": _queued(b, lambda: out.fill(0)),
        "indexing": _queued(b, lambda: column[index]) - allocation,
        "random": _queued(b, lambda: draws.standard_normal((64, 64), dtype="float32")) - allocation,
        "solver": _queued(b, lambda: xp.linalg.solve(x + xp.eye(64, dtype=b.dtype), column[:64]), 20)
        - _queued(b, lambda: x + xp.eye(64, dtype=b.dtype), 20)
        - allocation,
        "synchronize": _queued(b, b.synchronize),
    }
    read = _queued(b, lambda: float(single))
    found["scan"] = _queued(b, lambda: column[negative], 50) - read - found["indexing"] - allocation
    with b.capture() as graph:
        xp.multiply(x, x, out=out)
    found["graph"] = _queued(b, graph.replay)
    return found


def _allocation(b: Backend) -> dict[str, Any]:
    """Taking and giving back a block that the pool has."""
    return {"default": _queued(b, lambda: b.xp.empty(1024, dtype="int8"))}


def _copies(b: Backend, allocation: float) -> dict[str, float]:
    small, large = np.zeros(1, np.float32), np.zeros(16 * MIB, np.float32)
    staged, locked = np.zeros(MIB // 4, np.float32), b.pinned(large)
    x, huge = b.asarray(small), b.asarray(large)
    up, down = _queued(b, lambda: b.asarray(small)) - allocation, _queued(b, lambda: b.to_host(x))
    return {
        "h2d_call": up,
        "d2h_call": down,
        "item_call": _queued(b, lambda: float(x)),
        "h2d_staged": staged.nbytes / (_queued(b, lambda: b.asarray(staged), 20) - up - allocation),
        "h2d_pageable": large.nbytes / (_done(b, lambda: b.asarray(large)) - up),
        "h2d_pinned": large.nbytes / (_done(b, lambda: b.asarray(locked)) - up),
        "d2h_pageable": large.nbytes / (_done(b, lambda: b.to_host(huge)) - down),
        "d2h_pinned": large.nbytes / (_done(b, lambda: b.to_host(huge, out=locked)) - down),
    }


def _kernels(b: Backend, base: Device, product: int) -> dict[str, float]:
    """Kernel times, from graphs of many equal kernels, which the host does not hold up."""
    xp, floor = b.xp, base.kernel["floor"]
    tiny, big = (xp.zeros(size, dtype="float32") for size in (256, 16 * MIB))
    middle = xp.zeros(MIB, dtype="float32")
    rows, sums = xp.zeros((40_000, 64), dtype="float32"), xp.zeros(64, dtype="float32")
    little, weights = (xp.zeros((n, n), dtype="float32") for n in (16, 64))
    out = xp.zeros((40_000, 64), dtype="float32")
    gap = _node(b, lambda: xp.add(tiny, tiny, out=tiny))
    found = {
        "graph_gap": gap,
        "memory_rate": 3 * big.nbytes / (_node(b, lambda: xp.add(big, big, out=big), 10) - gap),
        "cache_rate": 3 * middle.nbytes / (_node(b, lambda: xp.add(middle, middle, out=middle)) - gap),
        "product_floor": _node(b, lambda: b.matmul(little, little, out=little)) - gap + floor,
    }
    before = gap - floor + found["product_floor"]  # of a product, what is not arithmetic
    for dtype in ("float32", "float64"):
        found[f"product_rate_{dtype}"] = _rate(b, product, dtype, before, base.kernel["product_half_width"])
    passes = math.ceil(len(rows) / (base.kernel["block_threads"] / 32))
    found["column_step"] = (_node(b, lambda: xp.sum(rows, axis=0, out=sums), 20) - gap) / passes
    narrow = _node(b, lambda: b.matmul(rows, weights, out=out), 20) - gap + floor - found["product_floor"]
    share = min(0.99, 2 * rows.size * 64 / narrow / found["product_rate_float32"])
    found["product_half_width"] = 64 * math.sqrt(1 / share - 1)
    return found


def _rate(b: Backend, n: int, dtype: str, before: float, half_width: float) -> float:
    """Operations a second that ever larger products approach, from a square one."""
    x, out = (b.xp.zeros((n, n), dtype=dtype) for _ in range(2))
    seconds = _node(b, lambda: b.matmul(x, x, out=out), 5) - before
    return 2 * n**3 / seconds * (1 + (half_width / n) ** 2)


def _queued(b: Backend, call: Call, calls: int = CALLS) -> float:
    """Seconds of the host for one call, the device running behind."""

    def run() -> float:
        b.synchronize()
        start = b.clock()
        for _ in range(calls):
            call()
        return (b.clock() - start) / calls

    return _median(run)


def _done(b: Backend, call: Call) -> float:
    """Seconds until one call is done on the device too."""

    def run() -> float:
        b.synchronize()
        start = b.clock()
        call()
        b.synchronize()
        return b.clock() - start

    return _median(run)


def _node(b: Backend, call: Call, nodes: int = NODES) -> float:
    """Seconds of the device for one captured kernel, with the gap before it."""
    call()
    with b.capture() as graph:
        for _ in range(nodes):
            call()

    def timed(replays: int) -> float:
        b.synchronize()
        start = b.clock()
        for _ in range(replays):
            graph.replay()
        b.synchronize()
        return b.clock() - start

    return _median(lambda: (timed(6) - timed(3)) / (3 * nodes))  # the difference leaves launch and wait out


def _median(run: Callable[[], float]) -> float:
    run()
    return statistics.median(run() for _ in range(REPEATS))
