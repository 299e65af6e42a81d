"""A progress bar for runs that are long enough to want one."""

from __future__ import annotations

import os
from typing import Any

from tqdm.auto import tqdm

from nnlab.optim import TrainState


class Progress:
    """A callback that shows steps, steps a second and the last logged loss.

    delay: seconds of training before the bar appears, so that short runs print nothing. With NNLAB_PROGRESS=off in the
    environment none appears: `nnlab test` compares what cells print, and a slow machine would print a bar.
    """

    def __init__(self, *, delay: float = 20.0) -> None:
        self.delay = delay
        self._bar: Any = None

    def on_start(self, state: TrainState) -> None:
        self._bar = tqdm(
            total=state.steps,
            initial=state.step,
            unit="step",
            delay=self.delay,
            leave=False,
            dynamic_ncols=True,
            disable=os.environ.get("NNLAB_PROGRESS") == "off",
        )

    def on_log(self, state: TrainState) -> None:
        self._bar.set_postfix(loss=f"{state.log['loss'][-1]:.4g}", refresh=False)
        self._bar.update(state.step - self._bar.n)

    def on_end(self, state: TrainState) -> None:
        self._bar.close()
