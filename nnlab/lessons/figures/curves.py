"""Loss against step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from nnlab.backends import on_host


def loss_curves(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    floor: tuple[str, float] | None = None,
    ylabel: str = "loss",
    size: tuple[float, float] = (7.0, 3.2),
) -> Figure:
    """One line per entry, label → (steps, losses), on a logarithmic loss axis.

    floor: label and height of a dashed line, say the best value that can be reached.
    """
    dashes = ("-", "--", "-.", ":")  # told apart without colour too
    fig, ax = plt.subplots(figsize=size)
    for i, (label, (steps, losses)) in enumerate(curves.items()):
        ax.plot(on_host(steps), on_host(losses), dashes[i % len(dashes)], label=label)
    if floor is not None:
        ax.axhline(floor[1], color="black", linewidth=1, linestyle=(0, (5, 4)), label=floor[0])
    ax.set(xlabel="step", ylabel=ylabel, yscale="log")
    if len(curves) > 1 or floor is not None:
        ax.legend()
    return fig
