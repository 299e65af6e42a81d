"""Blocks and threads over a hundred elements: which threads write, are idle, go too far (lesson 09)."""

from __future__ import annotations

from typing import NamedTuple

import ipywidgets
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from nnlab.backends.kernels import cuda
from nnlab.backends.sim.backend import SimBackend
from nnlab.lessons.widgets.explorer import Explorer

ELEMENTS = 100
BLOCKS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 13)
THREADS = (8, 16, 32, 64, 128)
NONE, IDLE, WRITES, OUTSIDE = range(4)
COLOURS = ("#FFFFFF", "#BBBBBB", "#009E73", "#D55E00")


class Launch(NamedTuple):
    """filled: which elements were written. fault: what the interpreter said, or nothing."""

    filled: np.ndarray
    fault: str


class Coverage(Explorer):
    """A fill kernel over 100 elements, launched with so many blocks of so many threads, with its guard or without.

    All launches are interpreted, thread by thread, when the widget is built.
    """

    def __init__(self) -> None:
        self.blocks = ipywidgets.SelectionSlider(options=BLOCKS, value=2, description="blocks", continuous_update=False)
        self.threads = ipywidgets.SelectionSlider(
            options=THREADS, value=32, description="threads", continuous_update=False
        )
        self.guard = ipywidgets.Dropdown(options=["with a guard", "without"], description="kernel")
        self.launches = {(n, t, g): launch(n, t, g) for n in BLOCKS for t in THREADS for g in (True, False)}
        super().__init__(
            {"blocks": self.blocks, "threads": self.threads, "guard": self.guard}, self._figure(),
            goal="fill all 100 elements with as few idle threads as you can. Then take the guard away.",
        )  # fmt: skip

    def update(self, blocks: int, threads: int, guard: str) -> str:
        """Show the threads of the launch, and the elements that it filled."""
        if blocks not in BLOCKS or threads not in THREADS:
            raise ValueError(f"blocks: {BLOCKS}, threads in a block: {THREADS}; not {blocks} and {threads}")
        if guard not in self.guard.options:
            raise ValueError(f"a kernel is 'with a guard' or 'without', not {guard!r}")
        guarded = guard == self.guard.options[0]
        filled, fault = self.launches[blocks, threads, guarded]
        map_ = np.full((max(BLOCKS), max(THREADS)), NONE)
        number = np.arange(blocks * threads).reshape(blocks, threads)
        map_[:blocks, :threads] = np.where(number < ELEMENTS, WRITES, IDLE if guarded else OUTSIDE)
        self.map.set_data(map_)
        self.elements.set_data(np.where(filled, WRITES, IDLE).reshape(10, 10))
        spare = max(blocks * threads - ELEMENTS, 0)
        head = f"{blocks} blocks of {threads} threads: <b>{int(filled.sum())}</b> of {ELEMENTS} elements filled"
        if fault:
            return f"{head}; {spare} threads <b>write outside</b>, and the interpreter stops at the first: {fault}"
        return f"{head}; <b>{spare}</b> threads idle"

    def _figure(self) -> Figure:
        fig = Figure(figsize=(7.8, 3.0), dpi=80, layout="constrained")
        left, right = fig.subplots(1, 2, width_ratios=[3, 1])
        colours = ListedColormap(COLOURS)
        empty = np.zeros((max(BLOCKS), max(THREADS)))
        self.map = left.imshow(empty, cmap=colours, vmin=0, vmax=3, aspect="auto", interpolation="nearest")
        left.set(xlabel="thread of its block", ylabel="block", title="Threads", yticks=range(0, max(BLOCKS), 4))
        self.elements = right.imshow(np.zeros((10, 10)), cmap=colours, vmin=0, vmax=3, interpolation="nearest")
        right.set(title="Elements, ten a row", xticks=[], yticks=[])
        for ax in (left, right):
            ax.grid(visible=False)
        labels = zip(COLOURS[1:], ("idle / empty", "writes / filled", "writes outside"), strict=True)
        handles = [Patch(facecolor=colour, edgecolor="black", label=label) for colour, label in labels]
        fig.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=9)
        return fig


def launch(blocks: int, threads: int, guarded: bool) -> Launch:
    """Interpret one launch."""
    b = SimBackend()
    out = b.xp.zeros(ELEMENTS, dtype="float32")
    fault = ""
    try:
        b.kernel(fill if guarded else fill_all)[blocks, threads](out, 1.0)
    except IndexError as error:
        fault = str(error).split(": ", 1)[1].split(". A card")[0]
    return Launch(b.to_host(out) == 1.0, fault)


def fill(out, value):  # type: ignore[no-untyped-def]
    """With its guard."""
    i = cuda.grid(1)
    if i < out.size:
        out[i] = value


def fill_all(out, value):  # type: ignore[no-untyped-def]
    """Without a guard."""
    out[cuda.grid(1)] = value
