"""Time one training step on the CPU: nnlab's eager and tiled engines beside PyTorch eager, taking turns.

usage: python benchmarks/cpu_steps.py [--job siren64] [--rounds 7] [--json OUT]
PyTorch is measured where it is installed. Times are medians over the rounds; the ratio is taken within each round,
so that a machine that slows down slows both. Run it on a quiet machine, with OPENBLAS_CORETYPE unset.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time

import numpy as np

import nnlab
from nnlab import nn
from nnlab.engines import engine
from nnlab.nn import losses
from nnlab.optim import SGD, Adam, TrainState, constant

try:
    import torch
except ImportError:
    torch = None

JOBS = {
    "estate": {"sizes": [6, 64, 1], "rows": 321, "kind": "tanh", "optimizer": "sgd", "steps": 200},
    "simba": {
        "sizes": [2, 64, 64, 128, 64, 32, 32, 32, 1],
        "rows": 40_000,
        "kind": "tanh",
        "optimizer": "sgd",
        "steps": 2,
    },
    "siren64": {"sizes": [2, 64, 64, 64, 1], "rows": 40_000, "kind": "sine", "optimizer": "adam", "steps": 3},
    "siren": {"sizes": [2, 256, 256, 256, 256, 1], "rows": 65_536, "kind": "sine", "optimizer": "adam", "steps": 1},
}


def nnlab_run(job: dict, name: str, x: np.ndarray, y: np.ndarray):
    b = nnlab.backend("numpy")
    rng = np.random.default_rng(0)
    build = nn.siren if job["kind"] == "sine" else nn.mlp
    model = build(job["sizes"], backend=b, rng=rng)
    optimizer = SGD() if job["optimizer"] == "sgd" else Adam()
    state = TrainState(model, losses.mse, optimizer, constant(1e-4), steps=10**9, log_every=1)
    session = engine(name).prepare(state, x, y)
    return lambda: session.advance(job["steps"])


def torch_run(job: dict, x: np.ndarray, y: np.ndarray):
    class Sine(torch.nn.Module):
        def forward(self, z):
            return torch.sin(30.0 * z)

    layers: list[torch.nn.Module] = []
    for fan_in, fan_out in zip(job["sizes"], job["sizes"][1:], strict=False):
        layers += [torch.nn.Linear(fan_in, fan_out), Sine() if job["kind"] == "sine" else torch.nn.Tanh()]
    model = torch.nn.Sequential(*layers[:-1])
    kind = torch.optim.SGD if job["optimizer"] == "sgd" else torch.optim.Adam
    optimizer = kind(model.parameters(), lr=1e-4)
    tx, ty = torch.from_numpy(x), torch.from_numpy(y)

    def advance():
        for _ in range(job["steps"]):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(tx), ty).backward()
            optimizer.step()

    return advance


def measure(job: dict, rounds: int) -> dict[str, list[float]]:
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (job["rows"], job["sizes"][0])).astype(np.float32)
    y = rng.uniform(0, 1, (job["rows"], 1)).astype(np.float32)
    runs = {name: nnlab_run(job, name, x, y) for name in ("eager", "tiled")}
    if torch is not None:
        runs["torch"] = torch_run(job, x, y)
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for round_ in range(rounds + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            if round_:  # the first round warms up
                seconds[name].append((time.perf_counter() - start) / job["steps"])
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--job", choices=JOBS, action="append")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", metavar="OUT")
    options = parser.parse_args()
    record: dict = {"machine": platform.processor() or platform.machine(), "numpy": np.__version__, "jobs": {}}
    if torch is not None:
        record["torch"] = torch.__version__
    for name in options.job or JOBS:
        seconds = measure(JOBS[name], options.rounds)
        record["jobs"][name] = seconds
        for run, times in seconds.items():
            against = ""
            if "torch" in seconds:
                ratio = statistics.median(t / mine for t, mine in zip(seconds["torch"], times, strict=True))
                against = f"   {ratio:5.2f} x as fast as PyTorch eager"
            print(f"{name:8} {run:6} {1e3 * statistics.median(times):9.3f} ms a step{against}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(record, file, indent=1)


if __name__ == "__main__":
    main()
