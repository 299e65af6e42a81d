"""What a training run looked like."""

from __future__ import annotations

from nnlab.optim import TrainState


class History:
    """The log of a run, and the state it ended in.

    step, loss, rate, seconds: lists of equal length, one entry for every `log_every` steps and one for the end. The
    loss is measured before that step's update (so the first entry is the untrained network, and the last the
    finished one); rate is that step's; seconds count training only, over all parts of a resumed run.
    interrupted: True when Ctrl-C ended the run before its last step.
    """

    def __init__(self, state: TrainState, *, interrupted: bool = False) -> None:
        self.state = state
        self.interrupted = interrupted

    @property
    def step(self) -> list[int]:
        return self.state.log["step"]

    @property
    def loss(self) -> list[float]:
        return self.state.log["loss"]

    @property
    def rate(self) -> list[float]:
        return self.state.log["rate"]

    @property
    def seconds(self) -> list[float]:
        return self.state.log["seconds"]

    def __repr__(self) -> str:
        state = self.state
        last = f", loss {self.loss[-1]:.6g}" if self.loss else ""
        return f"<History: {state.step} of {state.steps} steps{last}{', interrupted' if self.interrupted else ''}>"
