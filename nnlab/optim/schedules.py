"""Learning-rate schedules: pure functions of the global step, so that a resumed run sees the same rates."""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from nnlab.errors import UnknownName


class Schedule(ABC):
    """`schedule(k)` is the rate of step k, a Python float; k counts from 0 over the whole run, resumed or not."""

    @abstractmethod
    def __call__(self, k: int) -> float: ...

    @property
    @abstractmethod
    def config(self) -> dict[str, Any]:
        """What `schedule_from_config` needs to make this schedule again."""


@dataclass(frozen=True)
class Constant(Schedule):
    """The same rate at every step."""

    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", _positive("rate", self.rate))

    def __call__(self, k: int) -> float:
        return self.rate

    @property
    def config(self) -> dict[str, Any]:
        return {"schedule": "constant", "rate": self.rate}


@dataclass(frozen=True)
class Cosine(Schedule):
    """Half a cosine from `start` at step 0 down to `end` at step `steps` and after it.

    end + (start - end) (1 + cos(pi k / steps)) / 2 (Loshchilov and Hutter, 2017, eq. 5, without restarts).
    """

    start: float
    steps: int
    end: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", _positive("start", self.start))
        object.__setattr__(self, "end", float(self.end))
        if int(self.steps) != self.steps or self.steps < 1:
            raise ValueError(f"steps must be a whole number from 1, not {self.steps!r}")
        object.__setattr__(self, "steps", int(self.steps))
        if not 0 <= self.end <= self.start:
            raise ValueError(f"end must be from 0 to start ({self.start}), not {self.end}")

    def __call__(self, k: int) -> float:
        if k >= self.steps:
            return self.end
        return self.end + (self.start - self.end) * 0.5 * (1.0 + math.cos(math.pi * k / self.steps))

    @property
    def config(self) -> dict[str, Any]:
        return {"schedule": "cosine", "start": self.start, "steps": self.steps, "end": self.end}


def constant(rate: float) -> Constant:
    """The same rate at every step. Raises ValueError unless it is positive and finite."""
    return Constant(rate)


def cosine(start: float, steps: int, *, end: float = 0.0) -> Cosine:
    """From `start` at step 0 to `end` at step `steps`, along half a cosine. Raises ValueError for bad numbers."""
    return Cosine(start, steps, end)


def as_schedule(rate: float | Schedule) -> Schedule:
    """A number becomes a constant schedule; a schedule stays what it is."""
    return rate if isinstance(rate, Schedule) else Constant(rate)


SCHEDULES: dict[str, type[Constant | Cosine]] = {"constant": Constant, "cosine": Cosine}


def schedule_from_config(config: dict[str, Any]) -> Schedule:
    """The schedule that `schedule.config` describes. Raises UnknownName."""
    settings = dict(config)
    name = settings.pop("schedule")
    if name not in SCHEDULES:
        raise UnknownName("schedule", name, SCHEDULES)
    return SCHEDULES[name](**settings)


def _positive(name: str, value: float) -> float:
    if not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, or a schedule such as cosine(0.01, steps), not {value!r}")
    number = float(value)
    if not (number > 0 and math.isfinite(number)):
        raise ValueError(f"{name} must be a positive, finite number, not {number}; try something like 0.01")
    return number
