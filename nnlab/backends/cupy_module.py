"""CUDA C of our own on a real card: compiled at first use, cached, and launched as one cluster of blocks."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from nnlab.backends.base import Array
from nnlab.backends.cupy_import import check_process, load_cupy

PORTABLE_CLUSTER = 8  # blocks; a larger cluster must be allowed by an attribute of the kernel
_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14  # CUfunction_attribute, CUDA driver API


def capability_and_shared_bytes() -> tuple[tuple[int, int], int, int]:
    """The card's compute capability, the bytes of shared memory that one block may ask for, its multiprocessors."""
    device = load_cupy().cuda.Device()
    number = int(device.compute_capability)
    attributes = device.attributes
    shared_bytes, processors = attributes["MaxSharedMemoryPerBlockOptin"], attributes["MultiProcessorCount"]
    return divmod(number, 10), int(shared_bytes), int(processors)


def addresses(arrays: Sequence[Array]) -> Array:
    """A device array of the addresses of device arrays, for a kernel that takes any number of them."""
    return load_cupy().asarray(np.array([array.data.ptr for array in arrays], np.uint64))


class ClusterKernel:
    """A kernel whose blocks work together in clusters of `cluster`; its source says so with __cluster_dims__.

    blocks: how many there are in all, by default one cluster. templates: all that the source is to be compiled for,
    such as "forward<0>", where `name` is one of them. together: all blocks run at the same time, so that they may wait
    for one another; the launch is refused where the card has no room for that.
    Compiled by NVRTC when made; CuPy keeps the machine code on disk, by source and card.
    """

    def __init__(
        self,
        source: str,
        name: str,
        *,
        cluster: int,
        threads: int,
        shared_bytes: int,
        blocks: int | None = None,
        templates: tuple[str, ...] = (),
        together: bool = False,
    ) -> None:
        self.blocks, self.threads, self.shared_bytes = blocks or cluster, threads, shared_bytes
        device = int(load_cupy().cuda.runtime.getDevice())
        self.kernel = _compiled(source, templates, name, cluster, shared_bytes, together, device)

    def __call__(self, *arguments: Any) -> None:
        """Queue the kernel. Whole numbers arrive as 32-bit ones."""
        check_process()
        given = tuple(np.int32(argument) if isinstance(argument, int) else argument for argument in arguments)
        self.kernel((self.blocks,), (self.threads,), given, shared_mem=self.shared_bytes)


@functools.lru_cache(maxsize=256)
def _compiled(
    source: str, templates: tuple[str, ...], name: str, cluster: int, shared_bytes: int, together: bool, device: int
) -> Any:
    kernel = _module(source, templates, together, device).get_function(name)
    kernel.max_dynamic_shared_size_bytes = shared_bytes
    if cluster > PORTABLE_CLUSTER:
        load_cupy().cuda.driver.funcSetAttribute(kernel.kernel.ptr, _NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)
    return kernel


@functools.lru_cache(maxsize=16)
def _module(source: str, templates: tuple[str, ...], together: bool, device: int) -> Any:
    return load_cupy().RawModule(
        code=source,
        options=("-std=c++17",),
        name_expressions=templates or None,
        enable_cooperative_groups=together,
    )
