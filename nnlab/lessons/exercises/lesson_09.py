"""The exercises of lesson 09: kernels of the learner's, interpreted on a simulated GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nnlab.backends import backend
from nnlab.lessons.exercises import Unfinished, exercise

Function = Callable[..., Any]


@exercise("09.relu", right="One thread, one element; the guard keeps the spare threads out.")
def relu(value: Function) -> str | None:
    """Write the kernel relu(x, out): each element of out is that of x where it is positive, else 0."""
    x = np.array([-2.0, -1.0, 0.0, 1.0, 2.0], dtype=np.float32)
    out = _launched(value, 2, 4, x, np.full(5, np.nan, dtype=np.float32))
    wanted = np.maximum(x, 0)
    if np.array_equal(out, wanted):
        return None
    if np.array_equal(out[:4], wanted[:4]):
        return "Only the first block did its work: take the element by cuda.grid(1), not by cuda.threadIdx.x."
    return f"For x {x.tolist()} in 2 blocks of 4 threads, out should be {wanted.tolist()}, yours is {out.tolist()}."


@exercise("09.column_sums", right="No two threads write the same element, or they do it atomically.")
def column_sums(value: Function) -> str | None:
    """Write the kernel column_sums(x, out): add the sum of each column of x (rows, columns) to out (columns,)."""
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    out = _launched(value, 2, 8, x, np.zeros(3, dtype=np.float32))
    wanted = x.sum(axis=0)
    if np.array_equal(out, wanted):
        return None
    return f"For x {x.tolist()} out should be {wanted.tolist()}, yours is {out.tolist()}."


def _launched(kernel: Function, blocks: int, threads: int, x: np.ndarray, out: np.ndarray) -> np.ndarray:
    """What `kernel(x, out)` leaves in `out`. Raises Unfinished where it wrote nothing, and what the kernel raises."""
    b = backend("sim")
    result = b.asarray(out)
    interpreted = b.kernel(kernel)
    interpreted[blocks, threads](b.asarray(x), result)
    if not interpreted.report.writes + interpreted.report.atomics:
        raise Unfinished
    filled: np.ndarray = b.to_host(result)
    return filled
