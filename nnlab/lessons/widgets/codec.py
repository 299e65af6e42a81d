"""Fewer pixels, or fewer levels? (lesson 12)"""

from __future__ import annotations

from collections.abc import Mapping

import ipywidgets
import numpy as np
from matplotlib.figure import Figure

from nnlab.images import constant_image, psnr, resize
from nnlab.lessons.widgets.explorer import Explorer

SIZES = (10, 20, 30, 40, 50, 60, 80, 100, 120, 140, 160, 180, 200)
BITS = (1, 2, 3, 4, 5, 6, 7, 8)
METHODS = ("nearest", "bicubic")
WANTED = 20.0  # dB


class Codec(Explorer):
    """How many pixels and how many levels does a picture need, and what does it cost in bytes?

    pictures: name → (side, side), grey in [0, 1]. Each is brought to a smaller size, rounded to 2^bits levels and
    brought back to its own size; all combinations are computed when the widget is built.
    """

    def __init__(self, pictures: Mapping[str, np.ndarray]) -> None:
        self.pictures = dict(pictures)
        self.kept = {
            (name, method, size, bits): shrunk(picture, size, bits, method)
            for name, picture in self.pictures.items()
            for method in METHODS
            for size in SIZES
            for bits in BITS
        }
        self.quality = {key: psnr(self.pictures[key[0]], kept, data_range=1.0) for key, kept in self.kept.items()}
        self.picture_name = ipywidgets.Dropdown(options=list(self.pictures), description="picture")
        self.method = ipywidgets.Dropdown(options=METHODS, value="bicubic", description="method")
        self.size, self.bits = (
            ipywidgets.SelectionSlider(options=options, value=value, description=name, continuous_update=False)
            for options, value, name in ((SIZES, 60, "side"), (BITS, 4, "bits a pixel"))
        )
        controls = {"picture": self.picture_name, "method": self.method, "size": self.size, "bits": self.bits}
        goal = f"reach {WANTED:g} dB with as few bytes as you can, for each picture."
        super().__init__(controls, self._figure(), goal=goal)

    def update(self, picture: str, method: str, size: int, bits: int) -> str:
        """Show one combination."""
        key = (picture, method, size, bits)
        if key not in self.kept:
            raise ValueError(
                f"there is no {picture}, {method}, {size}, {bits}: pictures {list(self.pictures)}, "
                f"methods {METHODS}, sides {SIZES}, bits {BITS}"
            )
        truth, kept = self.pictures[picture], self.kept[key]
        self.truth.set_data(truth)
        self.shown.set_data(kept)
        for line, count in zip(self.lines, BITS, strict=True):
            line.set_ydata([self.quality[picture, method, side, count] for side in SIZES])
            line.set(linewidth=3 if count == bits else 1, color="#D55E00" if count == bits else "#56B4E9")
        self.point.set_data([costs(size, bits)], [self.quality[key]])
        floor = psnr(truth, constant_image(truth), data_range=1.0)
        self.floor.set_ydata([floor, floor])
        there = "" if self.quality[key] < WANTED else f"; <b>{WANTED:g} dB reached</b>"
        return (
            f"{picture}, {method}, {size} × {size} pixels of {bits} bit{'s' * (bits > 1)}: "
            f"<b>{costs(size, bits):,} bytes</b>, PSNR <b>{self.quality[key]:.2f} dB</b>{there} "
            f"(one grey for all: {floor:.2f} dB)"
        )

    def _figure(self) -> Figure:
        fig = Figure(figsize=(8.4, 3.0), dpi=80, layout="constrained")
        left, middle, right = fig.subplots(1, 3, width_ratios=[3, 3, 4])
        blank = np.zeros(next(iter(self.pictures.values())).shape)
        self.truth, self.shown = (ax.imshow(blank, cmap="gray", vmin=0, vmax=1) for ax in (left, middle))
        left.set_title("true")
        middle.set_title("kept")
        for ax in (left, middle):
            ax.axis("off")
        self.lines = [right.plot([costs(side, bits) for side in SIZES], [0.0] * len(SIZES))[0] for bits in BITS]
        (self.point,) = right.plot([], [], "o", color="none", markeredgecolor="black", markersize=12)
        right.axhline(WANTED, color="black", linewidth=1, linestyle="--")
        self.floor = right.axhline(0, color="black", linewidth=1, linestyle=":")
        right.set(xlabel="bytes", ylabel="PSNR in dB", xscale="log", xlim=(10, 50_000), ylim=(5, 40))
        right.set_title("a line for each number of bits", fontsize=10)
        return fig


def shrunk(picture: np.ndarray, size: int, bits: int, method: str) -> np.ndarray:
    """The picture after a stay at size × size pixels of 2^bits levels."""
    levels = 2**bits - 1
    small = np.rint(resize(picture, size, size, method=method).clip(0, 1) * levels) / levels
    return resize(small, *picture.shape, method=method).clip(0, 1).astype(np.float32)


def costs(size: int, bits: int) -> int:
    """Bytes of size × size pixels, packed, rounded up."""
    return -(-size * size * bits // 8)
