"""The staircase: one problem, run in ever faster ways, each step predicted before it is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib import pyplot as plt
from matplotlib.figure import Figure


@dataclass(frozen=True)
class Stair:
    """A way to run the problem, and the seconds an epoch of it takes, as far as they are known.

    predicted: from the receipt, before the run. modelled: by the simulated GPU. recorded: on the card named with the
    recording. live: on this machine.
    """

    label: str
    predicted: float | None = None
    modelled: float | None = None
    recorded: float | None = None
    live: float | None = None

    @property
    def best_known(self) -> float:
        """The figure the staircase is drawn through: live, else recorded, modelled, predicted."""
        for seconds in (self.live, self.recorded, self.modelled, self.predicted):
            if seconds is not None:
                return seconds
        raise ValueError(f"the step {self.label!r} has no time yet")


# how each kind of figure is drawn: label, marker, face, size
_MARKS = {
    "predicted": ("predicted from the receipt", "D", "none", 9),
    "modelled": ("modelled", "s", "#56B4E9", 8),
    "recorded": ("recorded on the card", "o", "#0072B2", 8),
    "live": ("live, this machine", "*", "#D55E00", 13),
}


def staircase(stairs: Sequence[Stair], *, card: str = "an H200", size: tuple[float, float] | None = None) -> Figure:
    """A row for each step, slowest way at the top, over seconds an epoch on a logarithmic axis.

    card: where `recorded` figures come from. Raises ValueError for no step, or one without any time.
    """
    if not stairs:
        raise ValueError("a staircase needs at least one step")
    times = [stair.best_known for stair in stairs]
    fig, ax = plt.subplots(figsize=size or (8.4, 1.3 + 0.42 * len(stairs)))
    rows = list(range(len(stairs)))
    ax.step([*times, times[-1]], [-0.5, *(row + 0.5 for row in rows)], where="pre", color="#777777", linewidth=1.5)
    for kind, (label, marker, face, width) in _MARKS.items():
        found = [(getattr(stair, kind), row) for stair, row in zip(stairs, rows, strict=True)]
        found = [(seconds, row) for seconds, row in found if seconds is not None]
        if found:
            x, y = zip(*found, strict=True)
            name = label.replace("the card", card)
            ax.plot(x, y, marker, markersize=width, markerfacecolor=face, markeredgecolor="black", label=name)
    for row, (stair, seconds) in enumerate(zip(stairs, times, strict=True)):
        last = max(known for kind in _MARKS if (known := getattr(stair, kind)) is not None)
        ax.annotate(_shown(seconds), (last, row), (12, 0), textcoords="offset points", va="center", fontsize=9)
    ax.set_yticks(rows, [stair.label for stair in stairs])
    ax.set(xscale="log", xlabel="seconds an epoch", ylim=(len(stairs) - 0.4, -0.6))
    least = min(known for stair in stairs for kind in _MARKS if (known := getattr(stair, kind)) is not None)
    ax.set_xlim(min(min(times) / 2, least / 1.4), max(times) * 6)
    ax.grid(visible=False, axis="y")
    fig.legend(loc="outside upper center", ncols=4, fontsize=9)
    return fig


def staircase_words(stairs: Sequence[Stair]) -> str:
    """The staircase in words, for the text alternative."""
    steps = "; ".join(f"{stair.label}: {_shown(stair.best_known)}" for stair in stairs)
    factor = stairs[0].best_known / stairs[-1].best_known
    return f"From top to bottom, time an epoch: {steps}. From first to last {factor:,.0f} times faster."


def _shown(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"
