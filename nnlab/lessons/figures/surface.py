"""What a network says at every point of a plane."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nnlab.backends import on_host

MAP = "PuOr"  # orange towards 0, purple towards 1; safe for colour-blind readers
GRID = 81  # points a side


def decision_surface(
    predict: Callable[[np.ndarray], np.ndarray],
    x: np.ndarray,
    y: np.ndarray,
    *,
    margin: float = 0.5,
    names: tuple[str, str] = ("x₁", "x₂"),
    size: tuple[float, float] = (4.6, 3.8),
) -> Figure:
    """Probability of class 1 over the plane, the border at 1/2, and the points themselves.

    predict: host array (n, 2) → (n, 1), the probability of class 1. x: (n, 2). y: (n, 1), classes 0 and 1.
    """
    x, y = on_host(x), on_host(y)
    points, extent = grid(x, margin=margin)
    fig, ax = plt.subplots(figsize=size)
    values = np.asarray(on_host(predict(points)), dtype=float).reshape(GRID, GRID)
    picture = ax.imshow(values, cmap=MAP, vmin=0, vmax=1, origin="lower", extent=extent, aspect="auto")
    if values.min() < 0.5 < values.max():
        ax.contour(values, levels=[0.5], colors="black", linewidths=1.5, extent=extent)
    scatter(ax, x, y)
    ax.set(xlabel=names[0], ylabel=names[1])
    ax.grid(visible=False)
    fig.colorbar(picture, ax=ax, label="probability of class 1")
    return fig


def grid(x: np.ndarray, *, margin: float) -> tuple[np.ndarray, tuple[float, float, float, float]]:
    """The points (GRID², 2) of a plane around x, row by row from the bottom, and its extent for `imshow`."""
    low, high = x.min(axis=0) - margin, x.max(axis=0) + margin
    first, second = np.meshgrid(np.linspace(low[0], high[0], GRID), np.linspace(low[1], high[1], GRID))
    return np.column_stack([first.ravel(), second.ravel()]), (low[0], high[0], low[1], high[1])


def scatter(ax: Axes, x: np.ndarray, y: np.ndarray) -> None:
    """The points of both classes, told apart by shape as well as by colour."""
    for value, marker, colour in ((0, "o", "#E69F00"), (1, "s", "#5D3A9B")):
        chosen = y.ravel() == value
        ax.plot(*x[chosen].T, marker, color=colour, markeredgecolor="white", markersize=9, label=f"class {value}")
