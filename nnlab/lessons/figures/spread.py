"""Many runs at once: every result as a dot, or the middle of many curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from nnlab.backends import on_host

DASHES = ("-", "--", "-.", ":")


def dots(
    groups: Mapping[str, np.ndarray],
    *,
    levels: Mapping[str, Sequence[float]] | None = None,
    ylabel: str,
    size: tuple[float, float] = (8.4, 3.6),
) -> Figure:
    """One column a group, label → results (n,): a dot for each, in rising order, and a bar at their median.

    levels: label → heights of horizontal lines to compare with, the first label's drawn through, the others' dashed.
    """
    fig, ax = plt.subplots(figsize=size)
    for place, values in enumerate(on_host(group) for group in groups.values()):
        ax.plot(place + np.linspace(-0.16, 0.16, len(values)), np.sort(values), "o", color="C0")
        ax.plot([place - 0.28, place + 0.28], [np.median(values)] * 2, color="black")
    for i, (label, heights) in enumerate((levels or {}).items()):
        for j, height in enumerate(heights):
            ax.axhline(height, color=f"C{i + 1}", linewidth=1.2, linestyle=DASHES[i % 4], label=None if j else label)
    ax.set_xticks(range(len(groups)), list(groups))
    ax.set(ylabel=ylabel, xlim=(-0.6, len(groups) - 0.4))
    ax.grid(visible=False, axis="x")
    if levels:
        fig.legend(loc="outside upper right", ncols=len(levels))
    return fig


def bands(
    x: Sequence[float],
    curves: Mapping[str, np.ndarray],
    *,
    floor: tuple[str, float] | None = None,
    ylabel: str,
    size: tuple[float, float] = (8.4, 3.6),
) -> Figure:
    """For each label, (len(x), runs): the median run, and a band from the 10th to the 90th percentile.

    floor: label and height of a line to compare with.
    """
    x = on_host(x)
    fig, ax = plt.subplots(figsize=size)
    for i, (label, values) in enumerate(curves.items()):
        low, middle, high = np.percentile(on_host(values), [10, 50, 90], axis=1)
        ax.plot(x, middle, DASHES[i % 4], color=f"C{i}", label=label)
        ax.fill_between(x, low, high, color=f"C{i}", alpha=0.25, linewidth=0)
    if floor is not None:
        ax.axhline(floor[1], color="black", linewidth=1, label=floor[0])
    ax.set(ylabel=ylabel)
    ax.legend()
    return fig
