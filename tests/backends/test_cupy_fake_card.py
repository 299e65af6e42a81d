"""The CuPy backend's own bookkeeping, on a stand-in for CuPy: doors, pools, receipts, recordings. No card is needed."""

from __future__ import annotations

import sys
import types
from contextlib import contextmanager

import numpy as np
import pytest

import nnlab
from nnlab.backends import cupy_backend, cupy_blas, cupy_import, cupy_measure, cupy_pools
from nnlab.errors import CaptureError, DeviceOutOfMemory, DoubleFree, MixedBackendError, UnknownName


class CUDARuntimeError(RuntimeError):
    pass


class OutOfMemoryError(MemoryError):
    pass


class Memory:
    def __init__(self, size: int) -> None:
        self.size, self.ptr = size, 1


class MemoryPointer:
    def __init__(self, mem: Memory, offset: int) -> None:
        self.mem, self.ptr = mem, offset


class MemoryPool:
    """Keeps one free block of each size."""

    def __init__(self, allocator=None) -> None:
        self.allocator = allocator or (lambda size: MemoryPointer(Memory(size), 0))
        self.free, self.used, self.limit = [], 0, None

    def malloc(self, size: int) -> MemoryPointer:
        pool, rounded = self, -(-size // 512) * 512
        if rounded not in self.free:
            if self.limit is not None and self.used + rounded > self.limit:
                raise OutOfMemoryError
            self.allocator(rounded)
        else:
            self.free.remove(rounded)
        self.used += rounded
        for hook in CUPY.hooks.values():
            hook.malloc_postprocess(device_id=0, size=size, mem_size=rounded, mem_ptr=1, pmem_id=1)

        class Pooled(Memory):
            def __del__(self) -> None:
                pool.used -= rounded
                pool.free.append(rounded)
                for hook in CUPY.hooks.values():
                    hook.free_postprocess(device_id=0, mem_size=rounded, mem_ptr=1, pmem_id=1)

        return MemoryPointer(Pooled(rounded), 0)

    malloc.__doc__ = "a block"
    used_bytes = property(lambda self: lambda: self.used)
    total_bytes = property(lambda self: lambda: self.used + sum(self.free))

    def set_limit(self, size: int) -> None:
        self.limit = size

    def free_all_blocks(self) -> None:
        self.free.clear()


class MemoryHook:
    def __enter__(self):
        CUPY.hooks[self.name] = self
        return self

    def __exit__(self, *_) -> None:
        del CUPY.hooks[self.name]


class Stream:
    def __init__(self, non_blocking: bool = False) -> None:
        self.ptr, self.capturing = id(self), False

    def __enter__(self):
        CUPY.streams.append(self)
        return self

    def __exit__(self, *_) -> None:
        CUPY.streams.pop()

    def begin_capture(self) -> None:
        self.capturing = True

    def end_capture(self):
        self.capturing = False
        return types.SimpleNamespace(launch=lambda: CUPY.launched.append("graph"))

    def is_capturing(self) -> bool:
        return self.capturing

    def synchronize(self) -> None:
        pass


class Device:
    def __init__(self, number: int = 0) -> None:
        self.id = number

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        pass

    def synchronize(self) -> None:
        pass


class ndarray(np.ndarray):
    device = Device()
    memory = None

    def __array_finalize__(self, other) -> None:
        self.memory = getattr(other, "memory", None)

    def get(self, out=None, blocking=True):
        if out is None:
            return np.array(self)
        out[...] = self
        return out

    def set(self, host) -> None:
        np.ndarray.__setitem__(self, ..., host)


ndarray.__module__ = "cupy"


class FakeCupy(types.ModuleType):
    ndarray = ndarray

    def __init__(self) -> None:
        super().__init__("cupy")
        self.hooks, self.streams, self.launched = {}, [Stream()], []
        self.allocator = MemoryPool().malloc
        runtime = types.SimpleNamespace(
            CUDARuntimeError=CUDARuntimeError,
            getDeviceCount=lambda: 1,
            getDevice=lambda: 0,
            getDeviceProperties=lambda number: {"name": b"Pretend 3000"},
            memGetInfo=lambda: (0, 2**30),
        )
        memory = types.SimpleNamespace(Memory=Memory, MemoryPointer=MemoryPointer, OutOfMemoryError=OutOfMemoryError)
        self.cuda = types.SimpleNamespace(
            runtime=runtime,
            memory=memory,
            MemoryPool=MemoryPool,
            MemoryHook=MemoryHook,
            Stream=Stream,
            memory_hook=types.SimpleNamespace(get_memory_hooks=lambda: self.hooks),
            Device=Device,
            get_current_stream=lambda: self.streams[-1],
            set_allocator=lambda allocator: setattr(self, "allocator", allocator),
            using_allocator=self.using,
        )
        self.random = np.random

    @contextmanager
    def using(self, allocator):
        before, self.allocator = self.allocator, allocator
        yield
        self.allocator = before

    def made(self, array: np.ndarray) -> ndarray:
        new = array.view(ndarray)
        new.memory = self.allocator(array.nbytes)
        return new

    def empty(self, shape, dtype="float64") -> ndarray:
        return self.made(np.zeros(shape, dtype))

    def ones(self, shape, dtype="float64") -> ndarray:
        return self.made(np.ones(shape, dtype))

    def asarray(self, host, order="C") -> ndarray:
        return self.made(np.array(host, order=order))


CUPY = FakeCupy()


@pytest.fixture
def card(monkeypatch):
    """A backend on the stand-in; nothing of it is left afterwards."""
    global CUPY  # noqa: PLW0603 - the classes above look it up
    CUPY = FakeCupy()
    monkeypatch.setitem(sys.modules, "cupy", CUPY)
    monkeypatch.setattr(cupy_import._Probe, "process", None)
    monkeypatch.setattr(cupy_import._Probe, "outcome", None)
    monkeypatch.setattr(cupy_pools.CardPool, "current", None)
    monkeypatch.setattr(cupy_measure, "tracer", lambda: None)
    cupy_backend._holder.cache_clear()
    yield nnlab.backend("cupy")
    cupy_backend._holder.cache_clear()


def test_the_card_is_found_and_named(card):
    assert nnlab.gpu_available()[0]
    assert card.home == "GPU 0 (Pretend 3000)"
    assert nnlab.backends.backend_of(card.asarray([1.0])).home == card.home


def test_a_receipt_without_cupti(card):
    with card.measure() as receipt:
        x = card.asarray(np.ones((100, 10)))
        card.asarray(2.0)
        card.asarray(np.zeros((0, 3)))
        card.synchronize()
        card.to_host(x)
        del x
        card.asarray(np.ones((100, 10)))
    assert (receipt.h2d_copies, receipt.h2d_bytes) == (3, 8004)
    assert (receipt.d2h_copies, receipt.d2h_bytes) == (1, 4000)
    assert (receipt.syncs, receipt.waits, receipt.launches) == (1, None, None)
    assert (receipt.allocations, receipt.pool_hits) == (2, 1)
    assert receipt.peak_bytes == 4096 + 512
    assert receipt.lines is None
    assert CUPY.hooks == {}
    assert cupy_measure.meters == cupy_pools.requested == []


def test_pools_and_what_they_say_of_memory(card):
    x = card.asarray(np.ones(1000))
    assert card.memory() == (4096, 4096, 2**30, 4096)
    del x
    assert card.memory() == (0, 4096, 2**30, 4096)
    card.release_memory()
    assert card.memory()[:2] == (0, 0)
    bare = nnlab.backend("cupy", pool="none", memory=10_000)
    x = bare.asarray(np.ones(1000))
    assert bare.memory() == (4096, 4096, 10_000, 4096)
    with pytest.raises(DeviceOutOfMemory, match=r"no 8,000 bytes left: arrays use 4,096, .* the limit is 10,000"):
        bare.asarray(np.ones(2000))
    del x
    assert bare.memory() == (0, 0, 10_000, 4096)
    with bare.measure() as receipt:
        bare.asarray([1.0])
        bare.asarray([1.0])
    assert (receipt.allocations, receipt.pool_hits, receipt.peak_bytes) == (2, 0, 512)
    limited = nnlab.backend("cupy", memory=1024)
    with pytest.raises(DeviceOutOfMemory, match="the limit is 1,024"):
        limited.asarray(np.ones(1000))
    with pytest.raises(UnknownName, match="'async'"):
        nnlab.backend("cupy", pool="asink")
    with pytest.raises(ValueError, match="memory=0"):
        nnlab.backend("cupy", memory=0)


def test_a_driver_that_refuses_and_one_that_breaks(card, monkeypatch):
    def fails(text):
        def make(size):
            raise CUDARuntimeError(text)

        return make

    monkeypatch.setattr(CUPY.cuda.memory, "Memory", fails("cudaErrorMemoryAllocation: out of memory"))
    with pytest.raises(DeviceOutOfMemory, match="release_memory"):
        card.asarray([1.0])
    monkeypatch.setattr(CUPY.cuda.memory, "Memory", fails("cudaErrorIllegalAddress"))
    with pytest.raises(CUDARuntimeError, match="IllegalAddress"):
        card.asarray([1.0])


def test_a_block_is_given_back_once(card):
    block = card.allocate(1000)
    assert card.memory().used == 1024
    block.free()
    assert card.memory().used == 0
    with pytest.raises(DoubleFree):
        block.free()


def test_homes_are_not_mixed(card):
    with pytest.raises(MixedBackendError, match="b lives on the host"):
        card.matmul(card.asarray([[1.0]]), np.ones((1, 1)))
    with pytest.raises(MixedBackendError, match="array lives on simulated GPU"):
        card.asarray(nnlab.backend("sim").asarray([1.0]))


@pytest.fixture
def recording(monkeypatch):
    """A cuBLAS handle that only hands its workspace over."""

    class Handle:
        @contextmanager
        def recording(self, stream):
            yield "workspace"

    monkeypatch.setattr(cupy_blas, "handle", lambda cupy: Handle())


def test_a_recording_has_a_pool_of_its_own(card, recording):
    before = card.memory().used
    with card.capture() as graph:
        assert CUPY.streams[-1].capturing
        x = CUPY.empty(1000, "float32")
    assert len(CUPY.streams) == 1
    assert card.memory().used == before + 4096
    with card.measure() as receipt:
        graph.replay()
    assert CUPY.launched == ["graph"]
    assert receipt.allocations == 0
    del x, graph
    assert card.memory().used == before


@pytest.mark.parametrize("door", ["asarray", "to_host", "synchronize"])
def test_the_doors_refuse_while_recording_and_the_stream_is_released(card, recording, door):
    x = card.asarray([1.0])
    call = {"asarray": lambda: card.asarray([1.0]), "to_host": lambda: card.to_host(x), "synchronize": card.synchronize}
    streams = []
    CUPY.cuda.Stream = lambda **options: streams.append(Stream(**options)) or streams[-1]
    with pytest.raises(CaptureError, match=f"{door}.*instead:"), card.capture() as graph:
        call[door]()
    assert not streams[0].capturing
    assert len(CUPY.streams) == 1
    with pytest.raises(CaptureError, match="not finished"):
        graph.replay()
    with pytest.raises(KeyError), card.capture():
        raise KeyError("the learner's own")
    assert len(CUPY.streams) == 1
