"""Timing contestants in turns, and holding each against float64."""

from __future__ import annotations

import datetime
import importlib
import importlib.metadata
import importlib.util
import os
import platform
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import nnlab
from benchmarks.steps import ours
from benchmarks.steps.contestant import Contestant, Field
from benchmarks.steps.jobs import Job
from nnlab.engines.tiled import cores

MODULES = {"torch": "torch_peers", "jax": "jax_peers", "cupy": "cupy_port", "sklearn": "sklearn_peer"}
PACKAGES = ("nnlab", "numpy", "torch", "jax", "scikit-learn", "cupy-cuda12x", "cupy-cuda13x", "numba")
THREAD_LIMITS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
SAMPLE_SECONDS = 0.05  # that one turn should take
# Before a turn on the CPU: the threads of whoever went before wait busily for a while, OpenBLAS's a tenth of a second.
PAUSE_SECONDS = {"cpu": 0.25, "gpu": 0.0}
# Operations a second at a card's full clock: float32 by its data sheet, TF32 as tensor cores were seen to run.
CARD_RATES = {"H200": {"float32": 67e12, "TF32": 315e12}}


def fields(device: str) -> tuple[Field, list[str]]:
    """Every contestant on the device ("cpu" or "gpu"), and the packages that are not installed."""
    everyone, missing = ours.field(device), []
    for package, module in MODULES.items():
        if importlib.util.find_spec(package) is None:
            missing.append(package)
        else:
            everyone |= importlib.import_module(f"benchmarks.steps.{module}").field(device)
    return everyone, missing


def measure(job: Job, device: str, everyone: Field, rounds: int, say: Callable[[str], None]) -> dict[str, Any]:
    """One job: per contestant the seconds of a training step and of a forward pass, a list each, and its accuracy."""
    start = [array for layer in job.start() for array in layer.values()]
    exact = _trained(ours.reference(job, device))
    record: dict[str, Any] = {"weights": job.weights, "rows": job.rows, "contestants": {}, "left_out": {}}
    record["floors"] = floors(job, device)
    record["numpy_float32_distance"] = _distance(_trained(ours.numpy32(job)), exact, start)
    ready: dict[str, Contestant] = {}
    for name, make in everyone.items():
        say(f"{job.name}: {name}")
        try:
            contestant = make(job)
            distance = _distance(_trained(contestant), exact, start)
        except NotImplementedError as reason:  # EngineCannot is one
            record["left_out"][name] = str(reason) or "does not know this job"
            continue
        except Exception as error:
            record["left_out"][name] = f"{type(error).__name__}: {error}"[:300]
            continue
        ready[name] = contestant
        record["contestants"][name] = {"distance": distance}
    for what in ("train", "forward"):
        for name, seconds in _in_turns(ready, what, rounds, PAUSE_SECONDS[device]).items():
            record["contestants"][name][what] = seconds
    return record


def floors(job: Job, device: str) -> dict[str, float]:
    """Seconds that a step's products alone would take, by precision; empty for cards whose rates are not known."""
    home = nnlab.backend("cupy").home if device == "gpu" else ""
    rates: dict[str, float] = next((rates for card, rates in CARD_RATES.items() if card in home), {})
    return {precision: job.operations / rate for precision, rate in rates.items()}


def _in_turns(ready: dict[str, Contestant], what: str, rounds: int, pause: float) -> dict[str, list[float]]:
    """Seconds a step, a sample per round; within a round everyone has a turn, so a slow spell hits all alike."""
    steps: dict[str, int] = {}
    for name, contestant in ready.items():
        try:
            once = _sample(contestant, what, 1)  # warms up
        except NotImplementedError:
            continue
        if once < SAMPLE_SECONDS:
            once = min(once, _sample(contestant, what, 2) / 2)
            guess = max(1, int(SAMPLE_SECONDS / 10 / once))
            once = _sample(contestant, what, guess) / guess
        steps[name] = max(1, int(SAMPLE_SECONDS / once))
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, count in steps.items():
            time.sleep(pause)
            if count > 1:
                _sample(ready[name], what, 1)
            seconds[name].append(_sample(ready[name], what, count) / count)
    return seconds


def _sample(contestant: Contestant, what: str, count: int) -> float:
    contestant.wait()
    start = time.perf_counter()
    getattr(contestant, what)(count)
    contestant.wait()
    return time.perf_counter() - start


def _trained(contestant: Contestant) -> list[np.ndarray]:
    contestant.train(contestant.job.check_steps)
    contestant.wait()
    return [np.array(array, np.float64) for array in contestant.weights()]


def _distance(found: list[np.ndarray], exact: list[np.ndarray], start: list[np.ndarray]) -> float:
    """Distance over displacement: |w - w64| / |w64 - w0|."""

    def length(one: list[np.ndarray], other: list[np.ndarray]) -> float:
        return float(np.sqrt(sum(((a - b) ** 2).sum() for a, b in zip(one, other, strict=True))))

    return length(found, exact) / length(exact, start)


def environment(device: str) -> dict[str, Any]:
    """Machine, versions and date."""
    record: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "host": f"{platform.system()} {platform.machine()}, {cores()} cores, {_processor()}",
        "python": platform.python_version(),
        "versions": dict(_versions()),
        "threads": {
            name: os.environ[name] for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS") if name in os.environ
        },
    }
    if device == "gpu":
        b = nnlab.backend("cupy")
        record["card"] = b.home
        record["driver"] = b.xp.cuda.runtime.driverGetVersion()
    return record


def _versions() -> Iterator[tuple[str, str]]:
    for package in PACKAGES:
        try:
            yield package, importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            if package == "nnlab":
                yield package, nnlab.__version__


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()
