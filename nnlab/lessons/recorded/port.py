"""The ports of lessons 05 and 07 timed on a card, NumPy on its host, and what single calls cost there."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from nnlab.backends import Backend, backend
from nnlab.lessons import cub_step, ports

HOST = {
    "NumPy, mail by mail": ports.Port(rows=1, masks=True, read=True),
    "NumPy, whole batch": ports.Port(read=True),
}
MANY = 100  # calls of one kind, timed together


def email(b: Backend) -> dict[str, Any]:
    """Milliseconds an epoch of every port in `ports.PORTS`; microseconds of a call in `prices`."""
    x, y = ports.mails()
    host = backend("numpy", dtype="float64")
    times = {name: _milliseconds(host, ports.runner(host, port, x, y)) for name, port in HOST.items()}
    for name, port in ports.PORTS.items():
        if port.rows is not None:  # seconds an epoch: warmed up on a few mails, timed once
            ports.runner(b, port, x[:50], y[:50])()
        warmup, repeats = (1, 21) if port.rows is None else (0, 1)
        times[name] = _milliseconds(b, ports.runner(b, port, x, y), warmup=warmup, repeats=repeats)
    return {"rows": len(x), "columns": x.shape[1], "milliseconds": times, "microseconds": prices(b, len(x))}


def cub(b: Backend) -> dict[str, Any]:
    """Milliseconds a step on the 200 x 200 cub, in every way of `cub_step.WAYS`."""
    host = backend("numpy")
    x, y = cub_step.data(200)
    times = {"NumPy": _milliseconds(host, cub_step.runner(host, "straight", x, y), repeats=3)}
    for way in cub_step.WAYS:
        times[way] = _milliseconds(b, cub_step.runner(b, way, x, y), warmup=2, repeats=11)
    wide = b.asarray(np.ones((len(x), 64)))
    calls = {"sum over rows": cub_step.sum_rows, "product with ones": cub_step.product_rows}
    single = {
        name: 1e3 * _milliseconds(b, partial(_often, partial(call, b, wide))) / MANY for name, call in calls.items()
    }
    return {"rows": len(x), "milliseconds": times, "microseconds": {name: round(t, 1) for name, t in single.items()}}


def prices(b: Backend, rows: int) -> dict[str, float]:
    """Microseconds of a launch, a mask, a read and an upload, and how many bytes of an upload take one more."""
    z, one, mask = b.asarray(np.ones((rows, 1))), b.asarray(np.ones(())), b.asarray(np.arange(rows) % 2 == 0)[:, None]
    small, large = np.ones(1), np.ones(2**16)
    calls: dict[str, Callable[[], object]] = {
        "launch": lambda: z * 2.0,
        "mask": lambda: z[mask],
        "read": lambda: float(one),
        "upload": lambda: b.asarray(small),
        "large": lambda: b.asarray(large),
    }
    cost = {name: 1e3 * _milliseconds(b, partial(_often, call)) / MANY for name, call in calls.items()}
    per_microsecond = (large.nbytes - small.nbytes) / (cost.pop("large") - cost["upload"])
    return {name: round(value, 1) for name, value in cost.items()} | {"bytes": round(per_microsecond)}


def _often(call: Callable[[], object]) -> None:
    for _ in range(MANY):
        call()


def _milliseconds(b: Backend, run: Callable[[], object], *, warmup: int = 1, repeats: int = 5) -> float:
    return float(f"{1e3 * b.time(run, warmup=warmup, repeats=repeats).median:.4g}")
