"""The contract of an engine: prepare a run once, then advance it by any number of steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any, ClassVar

from nnlab.backends import Array
from nnlab.errors import EngineCannot
from nnlab.nn.losses import Loss
from nnlab.optim import TrainState

TABLE = 2**20  # row numbers, at most, that are drawn ahead: 8 MB
KEPT = 2**26  # outputs and sums, about, that layers keep at most of a prediction for the loss: 256 MB in float32


class Session(ABC):
    """A prepared run. `advance(n)` takes n steps and returns their n losses, each measured before its update.

    The losses stay in the model's home. However a run is cut into calls of `advance`, the numbers are the same.
    stop: asked between steps (or short slices of them); once it says True, `advance` returns early.
    """

    state: TrainState
    x: Array
    y: Array
    stop: Callable[[], bool] = staticmethod(lambda: False)

    @abstractmethod
    def advance(self, n: int) -> Array:
        """Take n steps, or fewer where `stop()` says so; state.step grows by as many.

        Returns the losses of the steps taken, one array of the model's home.
        """

    def evaluate(self) -> Array:
        """The loss over all rows as things stand, a 0-d array of the model's home; nothing is changed."""
        model, xp = self.state.model, self.state.model.backend.xp
        kept = 2 * sum(value.shape[-1] for name, value in model.parameters.items() if name.endswith("weight"))
        rows = max(1, KEPT // max(1, kept))  # a picture of millions of pixels is predicted piece by piece
        pieces = [model(self.x[first : first + rows]) for first in range(0, len(self.x), rows)]
        loss, _ = self.state.loss(pieces[0] if len(pieces) == 1 else xp.concatenate(pieces), self.y)
        return loss


class Engine(ABC):
    """A way to run steps."""

    name: ClassVar[str]

    @property
    def settings(self) -> dict[str, Any]:
        """What `engine(name, **settings)` needs to make this engine again; it fits into JSON."""
        return {}

    @abstractmethod
    def prepare(self, state: TrainState, x: Array, y: Array) -> Session:
        """Get ready to train on x (rows, inputs) and y (rows, outputs), both in the model's home.

        Raises EngineCannot, naming what this engine does not support, before anything is run.
        """


def batches(state: TrainState, rows: int, count: int) -> Iterator[Array | None]:
    """For each of the next `count` steps the numbers of its rows, in the model's home, or None without batches.

    rows: of the data. The numbers of many steps go up in one copy.
    """
    if state.batch_size is None or state.batch_seed is None:
        yield from repeat(None, count)
        return
    first, ahead = state.step, max(1, TABLE // state.batch_size)
    for start in range(0, count, ahead):
        table = state.batches(rows, first + start, min(ahead, count - start))
        yield from state.model.backend.asarray(table)


class Compiled:
    """What a prepared run has built in. `check` refuses a state in which that has since been changed."""

    def __init__(self, state: TrainState) -> None:
        self.settings, self.loss = state.optimizer.config, state.loss
        self.arrays = state.arrays | model_arrays(state)

    def check(self, state: TrainState) -> None:
        """Raise EngineCannot for another loss, setting of the optimiser or array; schedules may change."""
        if state.loss is not self.loss:
            raise _changed("the loss", loss_name(self.loss), f"the state now has {loss_name(state.loss)}")
        now = state.optimizer.config
        for name in self.settings | now:
            if self.settings.get(name) != now.get(name):
                raise _changed(name, repr(self.settings.get(name)), f"the optimiser now has {now.get(name)!r}")
        check_arrays(self.arrays, state.arrays | model_arrays(state))


def model_arrays(state: TrainState) -> dict[str, Array]:
    """The parameters, as the model names them and as its layers hold them."""
    layers = enumerate(state.model.layers)
    held = {f"layers[{i}].parameters[{key!r}]": value for i, layer in layers for key, value in layer.parameters.items()}
    return state.model.parameters | held


def check_arrays(known: dict[str, Array], now: dict[str, Array]) -> None:
    """Raise EngineCannot where one of the arrays is another than the one that the run was prepared for."""
    for name in known | now:
        if known.get(name) is not now.get(name):
            raise EngineCannot(
                f"{name} has been replaced, and this run works on the array that was there before: write new numbers "
                "into that one, array[...] = numbers"
            )


def loss_name(loss: Loss) -> str:
    """What to call a loss in a message."""
    return getattr(loss, "__name__", type(loss).__name__)


def _changed(name: str, before: str, now: str) -> EngineCannot:
    return EngineCannot(
        f"this run was compiled with {name} = {before}, and {now}: change it between fit and resume, "
        "or use engine='eager', which follows changes"
    )
