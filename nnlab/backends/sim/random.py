"""Random numbers drawn on the device. They are not the numbers that a real card draws for the same seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnlab.backends.sim.gpu import Gpu

Size = int | tuple[int, ...] | None


class SimGenerator:
    """`xp.random.default_rng(seed)`: one kernel a draw. Draws cannot be captured into a graph."""

    def __init__(self, gpu: Gpu, seed: int | None) -> None:
        self._gpu = gpu
        if gpu.graph is not None:
            gpu.refuse_capture("random.default_rng", "make the generator before the capture")
        self._rng = np.random.default_rng(seed)
        gpu.launch("random", "seed", gpu.device.elementwise(0))

    def random(self, size: Size = None, dtype: Any = "float64") -> Any:
        """Uniform in [0, 1)."""
        return self._draw("random", self._rng.random(size), dtype)

    def uniform(self, low: float = 0.0, high: float = 1.0, size: Size = None, dtype: Any = "float64") -> Any:
        """Uniform in [low, high)."""
        return self._draw("uniform", self._rng.uniform(low, high, size), dtype)

    def standard_normal(self, size: Size = None, dtype: Any = "float64") -> Any:
        """Normal with mean 0 and deviation 1."""
        return self._draw("standard_normal", self._rng.standard_normal(size), dtype)

    def integers(self, low: int, high: int | None = None, size: Size = None, dtype: Any = "int64") -> Any:
        """Whole numbers in [low, high), or [0, low) without `high`."""
        return self._draw("integers", self._rng.integers(low, high, size), dtype)

    def _draw(self, name: str, values: Any, dtype: Any) -> Any:
        gpu = self._gpu
        if gpu.graph is not None:
            gpu.refuse_capture(f"the random draw {name}", "draw before the capture and copy into a fixed buffer")
        data = np.asarray(values, dtype)
        return gpu.result(data, "random", name, gpu.device.elementwise(data.nbytes))


class Random:
    """`xp.random` of one home."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu

    def default_rng(self, seed: int | None = None) -> SimGenerator:
        """A generator that draws on the device."""
        return SimGenerator(self._gpu, seed)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the simulated GPU has no xp.random.{name}; it draws through xp.random.default_rng(seed)")
