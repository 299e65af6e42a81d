"""The staircase of lesson 16, timed: every way of `climb` on this host and its card."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nnlab.backends import Backend, backend
from nnlab.images import psnr
from nnlab.lessons import climb, climb_costs, cub_step

CHECKED = 20  # steps after which a way is held against float64
SAMPLES = 7
SAMPLE_SECONDS = 0.04  # that one sample should take, and one step at least
COUNTS = ("launches", "allocations", "pool_hits", "h2d_copies", "d2h_copies", "waits")


def record(b: Backend) -> dict[str, Any]:
    """Each way's microseconds a step, receipt, memory traffic and accuracy; on a host, the ways of the host alone."""
    x, y = cub_step.data(200)
    record: dict[str, Any] = {"sizes": list(cub_step.SIZES), "rows": len(x), "loss": "mse", "optimizer": "sgd"}
    record |= {"rate": climb.RATE, "checked_steps": CHECKED, "ways": {}}
    start = _numbers(cub_step.layers(backend("numpy", dtype="float64")), backend("numpy"))
    exact: np.ndarray | None = None
    for way in climb.HOST if b.is_host else climb.WAYS:
        climber = climb.ready(way, b, x, y)
        climber.run(CHECKED)
        trained = _numbers(climber.net, climber.home)
        exact = trained if exact is None else exact
        record["ways"][way.label] = measure(climber) | {
            "traffic_bytes": _traffic(way, len(x)),
            "operations": climb_costs.operations(cub_step.SIZES, len(x)),
            "distance": float(f"{np.linalg.norm(trained - exact) / np.linalg.norm(exact - start):.3g}"),
            "psnr_db": round(_psnr(trained, x, y), 4),
        }
    return record


def measure(climber: climb.Climber) -> dict[str, Any]:
    """Microseconds a step, a list of samples, and what a step's receipt counts. The way should have run before."""
    home = climber.home
    with home.measure() as receipt:
        climber.run(1)
    steps, samples = (2, 1) if home.name == "sim" else _plan(climber)  # modelled times repeat themselves
    timing = home.time(lambda: climber.run(steps), warmup=0, repeats=samples)
    us = [float(f"{1e6 * seconds / steps:.5g}") for seconds in timing.seconds]
    return {"us": us} | {name: receipt.counts[name] for name in COUNTS}


def _plan(climber: climb.Climber) -> tuple[int, int]:
    """How many steps make a sample, and how many samples."""
    once = climber.home.time(lambda: climber.run(3), warmup=0, repeats=1).min / 3
    return max(1, math.ceil(SAMPLE_SECONDS / once)), SAMPLES if once < SAMPLE_SECONDS else 3


def _traffic(way: climb.Way, rows: int) -> int | None:
    """Bytes that a step reads and writes in the card's memory, counted and not measured; None for the host."""
    if way.home == "host":
        return None
    cost = climb_costs.cost(way, "h200", cub_step.SIZES, rows)
    return None if cost is None else cost.nbytes


def _numbers(net: climb.Net, home: Backend) -> np.ndarray:
    """All trained numbers of a network in one float64 vector, layer by layer, weight then bias."""
    return np.concatenate([home.to_host(part).astype(np.float64).ravel() for layer in net for part in layer])


def _psnr(numbers: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    """Of the picture that these numbers draw, on the pixels that were trained."""
    values, taken = x.astype(np.float64), 0
    shapes = [(w.shape, bias.shape) for w, bias in cub_step.layers(backend("numpy"))]
    for place, (shape, width) in enumerate(shapes):
        inputs, outputs = shape
        w = numbers[taken : taken + inputs * outputs].reshape(shape)
        taken += inputs * outputs
        z = values @ w + numbers[taken : taken + outputs].reshape(width)
        taken += outputs
        values = np.tanh(z) if place < len(shapes) - 1 else 0.5 + 0.5 * np.tanh(0.5 * z)
    return psnr(y.astype(np.float64), values, data_range=1.0)
