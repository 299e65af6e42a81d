"""What a simulated device costs: the figures of a file in `backends/devices`, and kernel times made of them."""

from __future__ import annotations

import math
import tomllib
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from nnlab.errors import UnknownName

FOLDER = Path(__file__).resolve().parents[1] / "devices"
NOT_MODELLED = (
    "Not modelled: occupancy, divergence, bank conflicts, clocks, bus contention, driver batching on Windows and WSL, "
    "races between streams, and the last bits of sums."
)


class Device:
    """A device file, read: title, measured (or estimated), source, and its tables of costs.

    All times are seconds, all rates bytes or operations a second. The kernel times below are a model: each class of
    kernel is bound by memory, by arithmetic or by its own start.
    """

    def __init__(self, name: str, figures: dict[str, Any]) -> None:
        self.name = name
        self.title: str = figures["title"]
        self.measured: bool = figures["measured"]
        self.source: str = figures["source"]
        self.host: dict[str, float] = figures["host"]
        self.compile: dict[str, float] = figures["compile"]
        self.allocate: dict[str, Any] = figures["allocate"]
        self.copy: dict[str, float] = figures["copy"]
        self.kernel: dict[str, float] = figures["kernel"]

    @cached_property
    def _memory(self) -> tuple[float, float, float, float]:
        k = self.kernel
        return k["floor"], k["cache_bytes"], k["cache_rate"], k["memory_rate"]

    def elementwise(self, moved: int) -> float:
        """A kernel that reads and writes `moved` bytes; a small working set stays in the L2 cache."""
        floor, cache, cache_rate, memory_rate = self._memory
        return floor + moved / (cache_rate if moved <= cache else memory_rate)

    def sum_rows(self, rows: int, columns: int) -> float:
        """A sum over the rows of a row-major matrix.

        A block of threads takes up to 32 columns and its threads share the rows, so the time grows with the rows and
        hardly with the columns.
        """
        share = self.kernel["block_threads"] / min(max(columns, 1), 32)
        return self._memory[0] + math.ceil(rows / share) * self.kernel["column_step"]

    def product(self, rows: int, inner: int, columns: int, itemsize: int) -> float:
        """A matrix product: bound by memory, or by arithmetic at a rate that narrow shapes do not reach."""
        k = self.kernel
        width = max(min(rows, inner, columns), 32)
        share = width**2 / (width**2 + k["product_half_width"] ** 2)
        rate = k["product_rate_float64" if itemsize == 8 else "product_rate_float32"] * share
        moved = (rows * inner + inner * columns + rows * columns) * itemsize
        padded = 2.0 * max(rows, 32) * max(inner, 32) * max(columns, 32)
        return k["product_floor"] + max(self.elementwise(moved) - k["floor"], padded / rate)

    def driver_block(self, size: int) -> float:
        """Asking the driver for `size` bytes and giving them back, between and beyond the measured sizes."""
        sizes, times = np.log(np.array(self.allocate["none"], dtype=np.float64)).T
        return float(np.exp(np.interp(math.log(max(size, 1)), sizes, times)))


def load_device(name: str) -> Device:
    """The device file called `name`, or at the path `name` if it ends in ".toml". Raises UnknownName."""
    if name.endswith(".toml"):
        path = Path(name)
        return Device(path.stem, tomllib.loads(path.read_text(encoding="utf-8")))
    names = sorted(path.stem for path in FOLDER.glob("*.toml"))
    if name not in names:
        raise UnknownName("device file", name, names)
    return Device(name, tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8")))
