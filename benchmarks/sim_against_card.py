"""The simulated GPU against a real card: the same code on both, counts and times side by side.

    python benchmarks/sim_against_card.py --out data/recordings/sim-against-h200.json

Times are microseconds a call: "host" until the calls have returned, "total" until the device is idle as well, "device"
what its kernels and copies took. Run it in five processes (--processes 5) for medians that another run will repeat.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import nnlab
from nnlab.backends import Backend
from nnlab.lessons.recorded.making import made_here
from nnlab.nn.losses import mse

NETWORKS = {
    "2-8-1": ([2, 8, 1], 4),
    "6-64-1": ([6, 64, 1], 321),
    "simba": ([2, 64, 64, 128, 64, 32, 32, 32, 1], 40_000),
}
Call = Callable[[], object]


def training_step(b: Backend, sizes: list[int], rows: int) -> Call:
    """One step of a tanh network on `rows` rows: forward, loss, backward, update."""
    rng = np.random.default_rng(0)
    model = nnlab.nn.mlp(sizes, backend=b, rng=rng)
    x, y = (b.asarray(rng.standard_normal((rows, n))) for n in (sizes[0], sizes[-1]))
    optimizer = nnlab.training.SGD()
    optimizer.prepare(model.parameters)

    def step() -> None:
        _, gradient = mse(model(x), y)
        model.backward(gradient, to_input=False)
        optimizer.update(model.parameters, model.gradients, 1e-3)

    return step


def operations(b: Backend) -> dict[str, Call]:
    """Single operations, by kind."""
    xp, rng = b.xp, np.random.default_rng(0)
    small, wide = b.asarray(np.ones((64, 64))), b.asarray(rng.standard_normal((40_000, 64)))
    square, out = b.asarray(np.ones((64, 64))), xp.empty((64, 64), dtype=b.dtype)
    column, index = b.asarray(rng.standard_normal((3530, 1))), b.asarray(np.arange(0, 3530, 2))
    tall, ones = b.asarray(rng.standard_normal((3530, 19))), b.asarray(np.ones((1, 40_000)))
    tall64, column64 = b.asarray(b.to_host(tall), dtype="float64"), b.asarray(b.to_host(column), dtype="float64")
    hosts = {size: np.zeros(size // 4, np.float32) for size in (4, 2**20, 2**22, 2**26)}
    locked, huge = b.pinned(hosts[2**26]), xp.zeros(2**24, dtype="float32")
    draws, negative = xp.random.default_rng(0), column < 0
    system = b.asarray(np.eye(64))
    source = 'extern "C" __global__ void nothing(const float* x) {}'
    nothing = b.raw_kernel(source, "nothing", reference=lambda x: None)
    calls: dict[str, Call] = {
        "ufunc": lambda: small * small,
        "ufunc, out=": lambda: xp.multiply(small, small, out=out),
        "ufunc 40,000 x 64": lambda: wide * wide,
        "tanh 40,000 x 64": lambda: xp.tanh(wide),
        "where": lambda: xp.where(small > 0, small, 0.0),
        "sum": small.sum,
        "sum 40,000 x 64": wide.sum,
        "sum of rows 40,000 x 64": lambda: xp.sum(wide, axis=0),
        "mean": small.mean,
        "b.matmul 64": lambda: b.matmul(square, square, out=out),
        "@ 64": lambda: square @ square,
        "b.matmul 40,000 x 64 x 64": lambda: b.matmul(wide, square),
        "b.matmul 64 x 40,000 x 64": lambda: b.matmul(wide, wide, transpose_a=True, out=out),
        "b.matmul 1 x 40,000 x 64": lambda: b.matmul(ones, wide),
        "@ 19 x 3,530 x 1": lambda: tall.T @ column,
        "@ 19 x 3,530 x 1 float64": lambda: tall64.T @ column64,
        "raw kernel": lambda: nothing[1, 32](out),
        "x[mask]": lambda: column[negative],
        "x[mask] = 0": lambda: column.__setitem__(negative, 0.0),
        "x[index]": lambda: column[index],
        "x[:] = 0": lambda: out.fill(0),
        "x[:] = y": lambda: out.__setitem__(slice(None), small),
        "zeros": lambda: xp.zeros((64, 64), dtype="float32"),
        "ones": lambda: xp.ones((64, 64), dtype="float32"),
        "astype": lambda: small.astype("float64"),
        "concatenate": lambda: xp.concatenate([small, small]),
        "argmax": small.argmax,
        "cumsum": lambda: xp.cumsum(column[:, 0]),
        "standard_normal": lambda: draws.standard_normal((64, 64), dtype="float32"),
        "solve 64": lambda: xp.linalg.solve(system, column[:64]),
        "float(x)": lambda: float(small[0, 0]),
        "to_host 4 B": lambda: b.to_host(small[0, 0]),
        "to_host 64 MiB": lambda: b.to_host(huge),
        "to_host 64 MiB pinned": lambda: b.to_host(huge, out=locked),
        "asarray 64 MiB pinned": lambda: b.asarray(locked),
    }
    for size, host in hosts.items():
        calls[f"asarray {size:,} B"] = lambda host=host: b.asarray(host)
    return calls


def cost(b: Backend, call: Call) -> dict[str, Any]:
    """Microseconds a call, on the host and in total, and the counts of one call."""
    for _ in range(3):
        call()
    b.synchronize()
    start, n = b.clock(), 0
    while n < 3 or (n < 50 and b.clock() - start < 0.05):
        call()
        n += 1
    host = b.clock() - start
    b.synchronize()
    total = b.clock() - start
    with b.measure() as receipt:
        call()
    counts = {name: count for name, count in receipt.counts.items() if name != "peak_bytes"}
    device = sum(event.end - event.start for event in receipt.events or () if event.lane == "device")
    return {
        "host_us": 1e6 * host / n,
        "total_us": 1e6 * total / n,
        "device_us": 1e6 * device,
        "counts": counts,
        "launched": receipt.by_operation(),
    }


def measure(b: Backend) -> dict[str, Any]:
    """The cost of every network's step and of every operation."""
    costs = {f"step {name}": cost(b, training_step(b, *network)) for name, network in NETWORKS.items()}
    return costs | {name: cost(b, call) for name, call in operations(b).items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the comparison to this JSON file")
    parser.add_argument("--processes", type=int, default=1, help="take medians over this many processes")
    parser.add_argument("--backend", choices=["cupy", "sim"], help="measure this one only and print JSON")
    arguments = parser.parse_args()
    if arguments.backend:
        print(json.dumps(measure(nnlab.backend(arguments.backend))))
        return
    command = [sys.executable, __file__, "--backend", "cupy"]
    runs = [
        json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        for _ in range(arguments.processes)
    ]
    model, rows = measure(nnlab.backend("sim", memory=2**32)), {}
    for name, modelled in model.items():
        measured = runs[0][name]
        for time in ("host_us", "total_us", "device_us"):
            measured[time] = statistics.median(run[name][time] for run in runs)
        rows[name] = {"card": measured, "sim": modelled}
        print(
            f"{name:28s} host {measured['host_us']:9.1f} {modelled['host_us']:9.1f}  "
            f"total {measured['total_us']:9.1f} {modelled['total_us']:9.1f}  "
            f"device {measured['device_us']:9.1f} {modelled['device_us']:9.1f}  "
            f"launches {measured['counts']['launches']} {modelled['counts']['launches']}"
        )
    if arguments.out:
        command_line = f"python benchmarks/sim_against_card.py --processes {arguments.processes}"
        record = {"made": made_here(nnlab.backend("cupy"), command_line), "rows": rows}
        arguments.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
