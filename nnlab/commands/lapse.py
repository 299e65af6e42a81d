"""A time-lapse of a network at work: frames taken while it trains, written as an animation or as a strip."""

from __future__ import annotations

import numpy as np

from nnlab.commands.painting import paint
from nnlab.images import from_unit, side_by_side, write_animation, write_image
from nnlab.optim import TrainState

FRAMES, STRIP = 40, 8
SECONDS = 4.0  # how long an animation lasts before its last picture is held


class TimeLapse:
    """A callback that keeps about `count` pictures, close together at first, when much changes."""

    def __init__(self, height: int, width: int, count: int = FRAMES) -> None:
        self.height, self.width, self.count = height, width, count
        self.frames: list[np.ndarray] = []
        self._due: list[int] = []

    def on_start(self, state: TrainState) -> None:
        self._take(state)
        moments = np.geomspace(state.log_every, max(state.steps - state.step, state.log_every), self.count - 1)
        self._due = sorted({state.step + int(moment) for moment in moments})

    def on_log(self, state: TrainState) -> None:
        if self._due and state.step >= self._due[0]:
            self._take(state)
            self._due = [moment for moment in self._due if moment > state.step]

    def on_end(self, state: TrainState) -> None:
        self._take(state)

    def _take(self, state: TrainState) -> None:
        self.frames.append(from_unit(paint(state.model, self.height, self.width)))

    def write(self, animation: str | None, strip: str | None) -> None:
        """Write what was asked for."""
        if animation is not None:
            write_animation(animation, self.frames, seconds=SECONDS / len(self.frames))
        if strip is not None:
            chosen = np.unique(np.linspace(0, len(self.frames) - 1, STRIP).round().astype(int))
            write_image(strip, side_by_side([self.frames[i] for i in chosen]))
