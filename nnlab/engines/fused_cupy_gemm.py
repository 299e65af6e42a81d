"""The fused engine's kernels for wide networks on a real card."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nnlab.backends import Array
from nnlab.backends.cupy_module import ClusterKernel
from nnlab.engines.fused_gemm import GemmPlan
from nnlab.engines.fused_products import Products
from nnlab.optim import TrainState


class Grid(ClusterKernel):
    """A kernel of blocks in up to three dimensions, which takes arrays."""

    def __init__(self, source: str, name: str, *, blocks: tuple[int, ...], threads: int, shared_bytes: int) -> None:
        super().__init__(source, name, cluster=1, threads=threads, shared_bytes=shared_bytes)
        self.grid = blocks

    def __call__(self, *arguments: Any) -> None:
        self.kernel(self.grid, (self.threads,), arguments, shared_mem=self.shared_bytes)


class CupyProducts(Products):
    """The kernels compiled by CuPy."""

    def __init__(self, plan: GemmPlan, state: TrainState, x: Array, y: Array) -> None:
        self.source = plan.source
        super().__init__(plan, state, x, y)

    def kernel(self, name: str, blocks: tuple[int, ...], threads: int, floats: int) -> Callable[..., None]:
        return Grid(self.source, name, blocks=blocks, threads=threads, shared_bytes=4 * floats)

    def address(self, array: Array) -> int:
        return int(array.data.ptr)
