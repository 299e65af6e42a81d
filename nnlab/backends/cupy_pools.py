"""Where the memory of CuPy's arrays comes from: straight from the driver, or from a pool that keeps blocks.

CuPy has one allocator a process, so the pool belongs to the card: the last backend made with `pool=` or `memory=`
sets it for all. Every request passes through here, where it is counted and where running out is told in bytes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from nnlab.backends.base import Memory
from nnlab.errors import DeviceOutOfMemory, DoubleFree, UnknownName

POOLS = ("none", "default", "async")
_UNIT = 512

requested: list[Callable[[int, bool], None]] = []  # measurements in progress: told the bytes, and if the pool had them


class CardPool(ABC):
    """One way of getting memory. limit: bytes that arrays may use, None for all of the card's."""

    current: ClassVar[CardPool | None] = None  # the one that serves the card's arrays now

    def __init__(self, cupy: Any, limit: int | None) -> None:
        self.cupy, self.limit = cupy, limit
        self.driver_blocks = 0
        self.peak = 0

    def allocate(self, size: int) -> Any:
        """CuPy's allocator: a pointer to `size` bytes. Raises DeviceOutOfMemory."""
        blocks = self.driver_blocks
        try:
            pointer = self._take(size)
        except self.cupy.cuda.memory.OutOfMemoryError as error:
            raise self._out_of_memory(size) from error
        except self.cupy.cuda.runtime.CUDARuntimeError as error:
            if "MemoryAllocation" not in str(error):
                raise
            raise self._out_of_memory(size) from error
        if self.driver_blocks != blocks:
            self.peak = max(self.peak, self.used)
        if size:
            for tell in requested:
                tell(size, self.driver_blocks == blocks)
        return pointer

    def memory(self) -> Memory:
        used = self.used
        self.peak = max(self.peak, used)
        return Memory(used, self.held, self.limit or self.cupy.cuda.runtime.memGetInfo()[1], self.peak)

    @property
    @abstractmethod
    def used(self) -> int:
        """Bytes in use by arrays."""

    @property
    @abstractmethod
    def held(self) -> int:
        """Bytes taken from the driver, in use or kept for reuse."""

    @abstractmethod
    def release(self) -> None:
        """Give blocks that are not in use back to the driver."""

    @abstractmethod
    def _take(self, size: int) -> Any: ...

    @contextmanager
    def watch(self) -> Iterator[Callable[[], int]]:
        """Yields a function that tells the most bytes in use since."""
        self.peak, before = self.used, self.peak
        try:
            yield lambda: max(self.peak, self.used)
        finally:
            self.peak = max(self.peak, before)

    def _from_driver(self, size: int) -> Any:
        memory = self.cupy.cuda.memory
        pointer = memory.MemoryPointer(memory.Memory(size), 0)
        self.driver_blocks += 1
        return pointer

    def _out_of_memory(self, size: int) -> DeviceOutOfMemory:
        now = self.memory()
        return DeviceOutOfMemory(
            f"the GPU has no {size:,} bytes left: arrays use {now.used:,}, held from the driver are {now.held:,}, "
            f"the limit is {now.limit:,}. Delete arrays that are not needed and call backend.release_memory(), work on "
            "fewer rows at a time, or raise memory="
        )


class KeepingPool(CardPool):
    """CuPy's own pool: freed blocks are kept, rounded to 512 bytes, and used again on the same stream."""

    def __init__(self, cupy: Any, limit: int | None) -> None:
        super().__init__(cupy, limit)
        self.pool = cupy.cuda.MemoryPool(self._from_driver)
        if limit is not None:
            self.pool.set_limit(size=limit)

    @property
    def used(self) -> int:
        return int(self.pool.used_bytes())

    @property
    def held(self) -> int:
        return int(self.pool.total_bytes())

    def release(self) -> None:
        self.pool.free_all_blocks()

    def _take(self, size: int) -> Any:
        return self.pool.malloc(size)

    @contextmanager
    def watch(self) -> Iterator[Callable[[], int]]:
        with _peak_hook(self.cupy, self.used) as hook:
            yield lambda: int(hook.peak)
        self.peak = max(self.peak, hook.peak)


class NoPool(CardPool):
    """Every array asks the driver, and gives its block back when it goes."""

    def __init__(self, cupy: Any, limit: int | None) -> None:
        super().__init__(cupy, limit)
        self._used = 0
        pool = self

        class Block(cupy.cuda.memory.Memory):  # type: ignore[misc]
            def __init__(self, size: int) -> None:
                super().__init__(size)
                self._counted = size
                pool._used += size

            def __del__(self) -> None:
                pool._used -= getattr(self, "_counted", 0)

        self._block = Block

    @property
    def used(self) -> int:
        return self._used

    @property
    def held(self) -> int:
        return self._used

    def release(self) -> None:
        """Nothing is kept."""

    def _take(self, size: int) -> Any:
        size = -(-size // _UNIT) * _UNIT  # as the pools round, so that bytes compare
        if self.limit is not None and self._used + size > self.limit:
            raise self.cupy.cuda.memory.OutOfMemoryError(size, self._used, self.limit)
        pointer = self.cupy.cuda.memory.MemoryPointer(self._block(size), 0)
        self.driver_blocks += 1
        return pointer


class DriverPool(CardPool):
    """The driver's own pool (cudaMallocAsync): frees and requests are ordered on the stream.

    release_threshold: bytes that the pool may keep when the host next waits; the driver's default of 0 gives all
    unused memory back at every synchronize.
    """

    def __init__(self, cupy: Any, limit: int | None, release_threshold: int) -> None:
        super().__init__(cupy, limit)
        # Not through cupy.cuda.MemoryAsyncPool: it takes a threshold of 0 for a limit of 0 bytes.
        self.runtime = cupy.cuda.runtime
        self.pool = self.runtime.deviceGetMemPool(self.runtime.getDevice())
        self.runtime.memPoolSetAttribute(self.pool, self.runtime.cudaMemPoolAttrReleaseThreshold, release_threshold)

    @property
    def used(self) -> int:
        return int(self.runtime.memPoolGetAttribute(self.pool, self.runtime.cudaMemPoolAttrUsedMemCurrent))

    @property
    def held(self) -> int:
        return int(self.runtime.memPoolGetAttribute(self.pool, self.runtime.cudaMemPoolAttrReservedMemCurrent))

    def release(self) -> None:
        self.runtime.deviceSynchronize()  # a block is free only once its stream has come past the free
        self.runtime.memPoolTrimTo(self.pool, 0)

    def _take(self, size: int) -> Any:
        size = -(-size // _UNIT) * _UNIT  # as the other pools round, so that bytes compare
        if self.limit is not None and self.used + size > self.limit:
            raise self.cupy.cuda.memory.OutOfMemoryError(size, self.used, self.limit)
        pointer = self.cupy.cuda.malloc_async(size)
        self.driver_blocks += 1
        return pointer


class Lease:
    """A bare block of device memory, given back once."""

    def __init__(self, pointer: Any, nbytes: int) -> None:
        self.pointer, self.nbytes = pointer, nbytes

    def free(self) -> None:
        """Give the block back. Raises DoubleFree the second time."""
        if self.pointer is None:
            raise DoubleFree(f"this block of {self.nbytes:,} bytes was given back before; free each block once")
        self.pointer = None


def choose_pool(cupy: Any, kind: str | None, limit: int | None, release_threshold: int = 0) -> CardPool:
    """Set the card's pool, or keep the one there is where neither kind nor limit is given.

    Raises UnknownName for another kind, ValueError for a limit below one byte.
    """
    serving = CardPool.current
    if serving is not None and kind is None and limit is None:
        return serving
    kind = kind or "default"
    if kind not in POOLS:
        raise UnknownName("pool", kind, POOLS)
    if limit is not None and limit < 1:
        raise ValueError(f"memory={limit}: the limit is a number of bytes, 1 or more; leave it out for the whole card")
    if serving is not None:
        serving.release()
    chosen: CardPool
    if kind == "async":
        chosen = DriverPool(cupy, limit, release_threshold)
    else:
        chosen = KeepingPool(cupy, limit) if kind == "default" else NoPool(cupy, limit)
    cupy.cuda.set_allocator(chosen.allocate)
    CardPool.current = chosen
    return chosen


def current_pool() -> CardPool:
    """The pool that serves the card's arrays now."""
    assert CardPool.current is not None, "a CupyBackend sets the pool when it is made"
    return CardPool.current


def _peak_hook(cupy: Any, used: int) -> Any:
    """A CuPy memory hook that follows the bytes in use, with the highest in `.peak`."""

    class PeakHook(cupy.cuda.MemoryHook):  # type: ignore[misc]
        name = f"nnlab peak {len(cupy.cuda.memory_hook.get_memory_hooks())}"  # CuPy wants a name of its own for each

        def __init__(self) -> None:
            self.used = self.peak = used

        def malloc_postprocess(self, *, mem_size: int, mem_ptr: int, **_: Any) -> None:
            if mem_ptr:
                self.used += mem_size
                self.peak = max(self.peak, self.used)

        def free_postprocess(self, *, mem_size: int, **_: Any) -> None:
            self.used -= mem_size

    return PeakHook()
