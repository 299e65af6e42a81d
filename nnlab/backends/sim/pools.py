"""Pools of device memory: none, CuPy's default one, and the driver's stream-ordered one.

A pool keeps blocks that were given back and hands them out again. It deals in sizes only: the bytes themselves are
NumPy's. Sizes are rounded up to 512 bytes, as on the card.
"""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING

from nnlab.errors import DoubleFree, UnknownName

if TYPE_CHECKING:
    from nnlab.backends.sim.gpu import Gpu

UNIT = 512


class Block:
    """A piece of device memory in use. It goes back to its pool when the last array in it goes, or by `free()`."""

    __slots__ = ("after", "before", "is_free", "pool", "size", "stream")

    def __init__(self, pool: Pool, size: int, stream: int) -> None:
        self.pool, self.size, self.stream = pool, size, stream
        self.before: Block | None = None  # neighbours in the driver's block this one was split from
        self.after: Block | None = None
        self.is_free = False


class Lease:
    """What an array holds: a block, given back once."""

    __slots__ = ("block", "nbytes")

    def __init__(self, block: Block, nbytes: int) -> None:
        self.block: Block | None = block
        self.nbytes = nbytes

    def free(self) -> None:
        """Give the block back. Raises DoubleFree the second time."""
        if self.block is None:
            raise DoubleFree(f"this block of {self.nbytes:,} bytes was given back before; free each block once")
        block, self.block = self.block, None
        block.pool.give_back(block)

    def __del__(self) -> None:
        block, self.block = self.block, None
        if block is not None:
            block.pool.give_back(block)


class Pool:
    """No pool: every block is asked of the driver and given back to it, which waits for the device."""

    name = "none"

    def __init__(self, gpu: Gpu, release_threshold: int = 0) -> None:
        self.gpu = gpu
        self.release_threshold = release_threshold
        self.held = 0

    def take(self, size: int, stream: int) -> tuple[Block, bool]:
        """A block of at least `size` bytes, and whether it was there already. Raises DeviceOutOfMemory."""
        size = -(-size // UNIT) * UNIT
        if self.gpu.held + size > self.gpu.limit:
            self.gpu.out_of_memory(size)
        self.held += size
        return Block(self, size, stream), False

    def give_back(self, block: Block) -> None:
        self.held -= block.size
        self.gpu.freed(block, to_driver=True)

    def release(self) -> None:
        """Give all blocks that are not in use back to the driver."""

    def synchronized(self) -> None:
        """The host has just waited for the device."""


class DefaultPool(Pool):
    """CuPy's default pool: the smallest free block of the stream that fits; split, and merged again when freed."""

    name = "default"

    def __init__(self, gpu: Gpu, release_threshold: int = 0) -> None:
        super().__init__(gpu, release_threshold)
        self._free: dict[int, dict[int, list[Block]]] = {}  # stream -> size -> blocks, maybe none
        self._sizes: dict[int, list[int]] = {}  # stream -> all sizes ever free there, sorted

    def take(self, size: int, stream: int) -> tuple[Block, bool]:
        size = -(-size // UNIT) * UNIT
        by_size = self._free.get(stream)
        if by_size is not None:
            blocks = by_size.get(size) or self._next_larger(by_size, self._sizes[stream], size)
            if blocks:
                block = blocks.pop()
                block.is_free = False
                if block.size > size:
                    self._split(block, size)
                return block, True
        if self.gpu.held + size > self.gpu.limit:
            self.release()
            if self.gpu.held + size > self.gpu.limit:
                self.gpu.out_of_memory(size)
        self.held += size
        return Block(self, size, stream), False

    def give_back(self, block: Block) -> None:
        self.gpu.freed(block, to_driver=False)
        before, after = block.before, block.after
        if after is not None and after.is_free:
            self._remove(after)
            block.size += after.size
            self._link(block, after.after)
        if before is not None and before.is_free:
            self._remove(before)
            before.size += block.size
            self._link(before, block.after)
            block = before
        self._add(block)

    def release(self) -> None:
        """Give whole blocks of the driver back that have no part in use."""
        for by_size in list(self._free.values()):
            for blocks in list(by_size.values()):
                for block in [b for b in blocks if b.before is None and b.after is None]:
                    self._remove(block)
                    self.held -= block.size

    @staticmethod
    def _next_larger(by_size: dict[int, list[Block]], sizes: list[int], size: int) -> list[Block] | None:
        for place in range(bisect.bisect_right(sizes, size), len(sizes)):
            if by_size[sizes[place]]:
                return by_size[sizes[place]]
        return None

    def _split(self, block: Block, size: int) -> None:
        rest = Block(self, block.size - size, block.stream)
        block.size = size
        self._link(rest, block.after)
        self._link(block, rest)
        self._add(rest)

    @staticmethod
    def _link(first: Block, second: Block | None) -> None:
        first.after = second
        if second is not None:
            second.before = first

    def _add(self, block: Block) -> None:
        block.is_free = True
        by_size = self._free.setdefault(block.stream, {})
        blocks = by_size.get(block.size)
        if blocks is None:
            blocks = by_size[block.size] = []
            bisect.insort(self._sizes.setdefault(block.stream, []), block.size)
        blocks.append(block)

    def _remove(self, block: Block) -> None:
        block.is_free = False
        self._free[block.stream][block.size].remove(block)


class AsyncPool(DefaultPool):
    """The driver's stream-ordered pool: at each wait of the host it hands back what it holds above its threshold."""

    name = "async"

    def synchronized(self) -> None:
        if self.held > self.release_threshold:
            self.release()


POOLS: dict[str, type[Pool]] = {"none": Pool, "default": DefaultPool, "async": AsyncPool}


def make_pool(name: str, gpu: Gpu, release_threshold: int) -> Pool:
    """The pool called `name`. Raises UnknownName."""
    if name not in POOLS:
        raise UnknownName("pool", name, POOLS)
    return POOLS[name](gpu, release_threshold)
