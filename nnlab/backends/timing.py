"""The result of timing a function: several runs, told apart from their warm-up."""

from __future__ import annotations

import statistics
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Seconds of each measured run, and how many warm-up runs came before them."""

    seconds: tuple[float, ...]
    warmup: int

    @property
    def repeats(self) -> int:
        return len(self.seconds)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def min(self) -> float:
        return min(self.seconds)

    @property
    def max(self) -> float:
        return max(self.seconds)

    def __str__(self) -> str:
        low, mid, high = (f"{1e3 * s:.3g}" for s in (self.min, self.median, self.max))
        return f"{mid} ms median [{low} .. {high}] of {self.repeats} runs after {self.warmup} warm-ups"
