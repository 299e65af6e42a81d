"""The roofline: how fast a step computes, over how much it computes for each byte that it moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib import pyplot as plt
from matplotlib.figure import Figure

SLOPED, FLAT = "black", ("#000000", "#5D3A9B", "#D55E00", "#0072B2")


@dataclass(frozen=True)
class Dot:
    """A step: operations for a byte of memory traffic, operations a second, and the flat roof over it, likewise."""

    label: str
    intensity: float
    rate: float
    roof: float


def roofline(
    dots: Sequence[Dot],
    *,
    memory: float,
    roofs: Mapping[str, float],
    size: tuple[float, float] = (8.4, 4.6),
) -> Figure:
    """Numbered dots under their roofs, both axes logarithmic; the numbers are told beside the figure.

    memory: bytes a second, the sloped roof. roofs: label → operations a second, the flat ones. Raises ValueError
    where there is nothing to draw.
    """
    if not dots or not roofs:
        raise ValueError("a roofline needs at least one dot and one roof")
    fig, ax = plt.subplots(figsize=size)
    left = min(dot.intensity for dot in dots) / 3
    right = max(*(dot.intensity for dot in dots), *(rate / memory for rate in roofs.values())) * 3
    top = max(roofs.values())
    ax.plot([left, top / memory], [left * memory, top], color=SLOPED, label=f"memory, {memory / 1e12:.3g} TB/s")
    for (label, rate), colour, dash in zip(roofs.items(), FLAT[1:], ("--", "-.", ":"), strict=False):
        named = f"{label}, {rate / 1e12:.0f} TFLOP/s"
        ax.plot([rate / memory, right], [rate, rate], dash, color=colour, label=named)
    for number, dot in enumerate(dots, 1):
        ax.plot([dot.intensity], [dot.rate], "o", color="C0", markersize=15, markeredgecolor="black", alpha=0.9)
        ax.annotate(
            str(number), (dot.intensity, dot.rate), ha="center", va="center", color="white", fontsize=9, weight="bold"
        )
        ax.plot([], [], " ", label=f"{number}  {dot.label}")
    ax.set(xscale="log", xlabel="operations for each byte of memory traffic", xlim=(left, right))
    ax.set(yscale="log", ylabel="operations a second", ylim=(min(dot.rate for dot in dots) / 3, top * 3))
    ax.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return fig


def roofline_words(dots: Sequence[Dot], *, memory: float) -> str:
    """The dots in words: where each stands, and how far below the roof over its place."""
    shares = [dot.rate / min(dot.roof, memory * dot.intensity) for dot in dots]
    told = (
        f"{dot.label}: {dot.intensity:.3g} operations a byte, {share:.0%} of its roof"
        for dot, share in zip(dots, shares, strict=True)
    )
    return "; ".join(told) + "."
