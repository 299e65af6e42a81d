"""Timing contestants in turns, and holding each against float64."""

from __future__ import annotations

import datetime
import importlib
import importlib.metadata
import importlib.util
import math
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
    """One job: per contestant the seconds of a training step and of a forward pass, a list each, and its accuracy.

    Whoever raises, getting ready or in a turn, is in "left_out" with the reason instead.
    """
    start = [array for layer in job.start() for array in layer.values()]
    exact = _trained(ours.reference(job, device))
    record: dict[str, Any] = {"weights": job.weights, "rows": job.rows, "contestants": {}, "left_out": {}}
    record["floors"] = floors(job, device)
    record["numpy_float32_distance"] = _distance(_trained(ours.numpy32(job)), exact, start)
    ready: dict[str, Contestant] = {}
    found: dict[str, dict[str, Any]] = {}
    for name, make in everyone.items():
        say(f"{job.name}: {name}")
        with _leaving_out(name, ready, record["left_out"]):
            contestant = make(job)
            found[name] = {"distance": _distance(_trained(contestant), exact, start)}
            ready[name] = contestant
    for what in ("train", "forward"):
        for name, seconds in _in_turns(ready, what, rounds, PAUSE_SECONDS[device], record["left_out"]).items():
            found[name][what] = seconds
    record["contestants"] = {name: found[name] for name in ready}
    return record


@contextmanager
def _leaving_out(name: str, ready: dict[str, Contestant], left_out: dict[str, str]) -> Iterator[None]:
    """Whoever raises in the block has no more turns, and its reason is kept."""
    try:
        yield
    except Exception as error:
        ready.pop(name, None)
        if isinstance(error, NotImplementedError):  # EngineCannot is one
            left_out[name] = str(error) or "does not know this job"
        else:
            left_out[name] = f"{type(error).__name__}: {error}"[:300]


def floors(job: Job, device: str) -> dict[str, float]:
    """Seconds that a step's products alone would take, by precision; empty for cards whose rates are not known."""
    home = nnlab.backend("cupy").home if device == "gpu" else ""
    rates: dict[str, float] = next((rates for card, rates in CARD_RATES.items() if card in home), {})
    return {precision: job.operations / rate for precision, rate in rates.items()}


def _in_turns(
    ready: dict[str, Contestant], what: str, rounds: int, pause: float, left_out: dict[str, str]
) -> dict[str, list[float]]:
    """Seconds a step, a sample per round; within a round everyone has a turn, so a slow spell hits all alike."""
    steps: dict[str, int] = {}
    for name, contestant in tuple(ready.items()):
        with _leaving_out(name, ready, left_out):
            try:
                steps[name] = _steps(contestant, what)
            except NotImplementedError:
                if what == "train":
                    raise
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, count in steps.items():
            if name not in ready:
                continue
            time.sleep(pause)
            with _leaving_out(name, ready, left_out):
                if count > 1:
                    _sample(ready[name], what, 1)
                seconds[name].append(_sample(ready[name], what, count) / count)
    return {name: taken for name, taken in seconds.items() if name in ready}


def _steps(contestant: Contestant, what: str) -> int:
    """How many steps make a sample; warms up."""
    once = _sample(contestant, what, 1)
    if once < SAMPLE_SECONDS:
        once = min(once, _sample(contestant, what, 2) / 2)
        guess = max(1, int(SAMPLE_SECONDS / 10 / once))
        once = _sample(contestant, what, guess) / guess
    return max(1, int(SAMPLE_SECONDS / once))


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


def _distance(found: list[np.ndarray], exact: list[np.ndarray], start: list[np.ndarray]) -> float | None:
    """Distance over displacement: |w - w64| / |w64 - w0|. None where it is not finite, which JSON cannot say."""

    def length(one: list[np.ndarray], other: list[np.ndarray]) -> float:
        return float(np.sqrt(sum(((a - b) ** 2).sum() for a, b in zip(one, other, strict=True))))

    distance = length(found, exact) / length(exact, start)
    return distance if math.isfinite(distance) else None


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
