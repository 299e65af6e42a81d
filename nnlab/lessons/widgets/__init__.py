"""Sliders with a goal, one file each.

Each is a column of controls, a line of numbers and one picture; `ui.show(rate=0.1)` does from Python what the
controls do by hand, and returns the numbers as text. A reader without a kernel sees a static picture.
"""

from __future__ import annotations

import importlib
from typing import Any

_FILES = {
    "Climb": "climb",
    "Codec": "codec",
    "Coverage": "coverage",
    "Crash": "crash",
    "Crossover": "crossover",
    "Dispatch": "dispatch",
    "Explorer": "explorer",
    "Lanes": "lanes",
    "LearningRate": "learning_rate",
    "Pools": "pools",
    "PortCost": "port",
    "Prices": "prices",
    "Products": "products",
    "Signals": "signals",
    "Sines": "sines",
    "Threshold": "threshold",
    "TimeLapse": "time_lapse",
    "Xor": "xor",
    "plain": "explorer",
}

__all__ = [
    "Climb",
    "Codec",
    "Coverage",
    "Crash",
    "Crossover",
    "Dispatch",
    "Explorer",
    "Lanes",
    "LearningRate",
    "Pools",
    "PortCost",
    "Prices",
    "Products",
    "Signals",
    "Sines",
    "Threshold",
    "TimeLapse",
    "Xor",
    "plain",
]


def __getattr__(name: str) -> Any:
    if name in _FILES:
        return getattr(importlib.import_module(f"nnlab.lessons.widgets.{_FILES[name]}"), name)
    raise AttributeError(f"module 'nnlab.lessons.widgets' has no attribute {name!r}")
