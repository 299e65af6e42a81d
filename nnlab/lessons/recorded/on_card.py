"""All lessons, executed once on a real card with all their asserts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from nnlab.backends import Backend

AT_ONCE = 4  # lessons in kernels of their own; a card is shared by them


def record(b: Backend) -> dict[str, Any]:
    """Whether each lesson ran to its end here, and the seconds it took beside the others.

    A cell that fails leaves its lesson's "error": the last lines of what it said.
    """
    from nnlab.lessons.execute import find

    return {"backend": b.name, "at_once": AT_ONCE, "lessons": run_all(find([]))}


def run_all(paths: Sequence[Path]) -> dict[str, Any]:
    """Execute notebooks without saving them; the outcome by file name, in order."""
    with ProcessPoolExecutor(AT_ONCE, mp_context=get_context("spawn")) as pool:  # a fork would take a card along
        outcomes = list(pool.map(_run, paths))
    return {path.name: outcome for path, outcome in zip(paths, outcomes, strict=True)}


def _run(path: Path) -> dict[str, Any]:
    from nbclient.exceptions import CellExecutionError

    from nnlab.lessons.execute import execute

    start, error = time.perf_counter(), None
    try:
        execute(path)
    except CellExecutionError as problem:
        error = str(problem)[-1500:]
    outcome = {"passed": error is None, "seconds": round(time.perf_counter() - start, 1)}
    print(f"{path.name}: {'passed' if error is None else 'FAILED'}", flush=True)
    return outcome if error is None else outcome | {"error": error}
