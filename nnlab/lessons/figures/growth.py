"""How time and memory grow with a picture, on several devices, from the recordings of nnlab.lessons.recorded.growth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from matplotlib import pyplot as plt
from matplotlib.figure import Figure

PICO, MEGA = 1e12, 1e6
STYLES = ("o-", "s--", "D-.", "^:")


def growth(recordings: Mapping[str, dict[str, Any]], *, size: tuple[float, float] = (8.4, 3.8)) -> Figure:
    """Left: picoseconds a step for each row and weight; right: megabytes held at most; both over the pixels.

    recordings: device -> its recording. A flat line on the left is time in proportion to the picture. The line "the
    data" on the right is what coordinates and targets take by themselves.
    """
    fig, (left, right) = plt.subplots(1, 2, figsize=size)
    for i, (label, points, weights) in enumerate(_curves(recordings)):
        rows = [point["rows"] for point in points]
        left.plot(rows, [_picoseconds(point, weights) for point in points], STYLES[i % 4], color=f"C{i}", label=label)
        right.plot(rows, [point["bytes"] / MEGA for point in points], STYLES[i % 4], color=f"C{i}")
    most = max(point["rows"] for _, points, _ in _curves(recordings) for point in points)
    right.plot([most / 1000, most], [12 * most / 1000 / MEGA, 12 * most / MEGA], color="black", linewidth=1)
    right.annotate("the data", (most / 60, 12 * most / 60 / MEGA), (8, -8), textcoords="offset points", fontsize=9)
    left.set(xscale="log", yscale="log", xlabel="pixels", ylabel="ps a step for each row and weight")
    right.set(xscale="log", yscale="log", xlabel="pixels", ylabel="MB held at most")
    fig.legend(loc="outside upper center", ncols=4)
    return fig


def growth_words(recordings: Mapping[str, dict[str, Any]]) -> str:
    """The figure in words, for the text alternative: each line at its two ends."""
    said = []
    for label, points, weights in _curves(recordings):
        first, last = points[0], points[-1]
        said.append(
            f"{label}: {_picoseconds(first, weights):.2g} ps and {first['bytes'] / MEGA:,.0f} MB at {first['rows']:,} "
            f"pixels, {_picoseconds(last, weights):.2g} ps and {last['bytes'] / MEGA:,.0f} MB at {last['rows']:,}"
        )
    lines = "; ".join(said)
    return f"Time a step for each row and weight, and memory, over the pixels. {lines}. The data take 12 bytes a pixel."


def _curves(recordings: Mapping[str, dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]], int]]:
    """Label, measured points and weights of every engine; sizes that an engine cannot do are left out."""
    for device, recording in recordings.items():
        for engine, points in recording["engines"].items():
            yield f"{engine}, {device}", [point for point in points if "cannot" not in point], recording["weights"]


def _picoseconds(point: dict[str, Any], weights: int) -> float:
    return float(PICO * point["seconds"] / point["rows"] / weights)
