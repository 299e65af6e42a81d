"""What the driver saw: kernels, copies and waits, through CUPTI (the optional package cupti-python).

CUPTI reports every piece of work with its times, also what passes no door of ours: `float(loss)`, masks, prints.
Without the package `tracer()` gives None, and a receipt says *not available* where only the driver could know.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

_BUFFER_BYTES = 8 * 2**20
_CALLS = (
    ("driver", "cuLaunchKernel"),
    ("driver", "cuLaunchKernelEx"),
    ("runtime", "cudaLaunchKernel_v7000"),
    ("runtime", "cudaLaunchKernelExC_v11060"),
)
_NUMBERS = {  # the tables of calls, as they are named in cupti-python before and since 13.2
    "driver": ("driver_api_trace_cbid", "DriverApiTraceCbid"),
    "runtime": ("runtime_api_trace_cbid", "RuntimeApiTraceCbid"),
}
_KINDS = ("CONCURRENT_KERNEL", "MEMCPY", "MEMSET", "SYNCHRONIZATION")


class Record(NamedTuple):
    """One thing the driver did; times in nanoseconds.

    kind: "kernel", "memset", "h2d", "d2h", "d2d" or "wait"; "call" for the host's call that launched the kernel of the
    same number. graph: 0 outside a CUDA graph. pageable: a copy whose host side is ordinary memory.
    """

    kind: str
    name: str
    start: int
    end: int
    bytes: int = 0
    stream: int = 0
    graph: int = 0
    number: int = 0
    pageable: bool = False


class Tracer:
    """Collects the records of all measurements in progress; CUPTI serves one subscriber a process."""

    def __init__(self, cupti: Any) -> None:
        self.cupti = cupti
        self.records: list[Record] = []
        self._own: list[tuple[int, int]] = []
        self._depth = 0
        cupti.activity_register_callbacks(lambda: (_BUFFER_BYTES, 0), self._take)

    @contextmanager
    def follow(self, synchronize: Callable[[], None]) -> Iterator[list[Record]]:
        """Yields a list that holds, once the block is left, what the driver did in it; our own waits left out."""
        found: list[Record] = []
        self._settle(synchronize)
        first = len(self.records)
        if self._depth == 0:
            self._switch("activity_enable")
        self._depth += 1
        try:
            yield found
        finally:
            self._settle(synchronize)
            self._depth -= 1
            found += [record for record in self.records[first:] if not self._is_ours(record)]
            if self._depth == 0:
                self._switch("activity_disable")
                self.records.clear()
                self._own.clear()

    def quietly(self, synchronize: Callable[[], None]) -> None:
        """Wait for the device without the wait being counted."""
        start = self.now()
        synchronize()
        self.leave_out(start)

    def leave_out(self, start: int) -> None:
        """Count no wait between `start`, on CUPTI's clock, and now."""
        self._own.append((start, self.now()))

    @property
    def following(self) -> bool:
        """Is a measurement in progress?"""
        return self._depth > 0

    def now(self) -> int:
        """CUPTI's clock in nanoseconds."""
        return int(self.cupti.get_timestamp())

    def _settle(self, synchronize: Callable[[], None]) -> None:
        """Wait for the device and fetch all records."""
        self.quietly(synchronize)
        self.cupti.activity_flush_all(1)

    def _is_ours(self, record: Record) -> bool:
        return record.kind == "wait" and any(start <= record.start <= end for start, end in self._own)

    def _switch(self, function: str) -> None:
        for kind in _KINDS:
            getattr(self.cupti, function)(self.cupti.ActivityKind[kind])
        with suppress(Exception):  # a CUPTI that cannot single calls out; then the timeline lacks their host times
            for kind, call in _CALLS:
                numbers = next(found for name in _NUMBERS[kind] if (found := getattr(self.cupti, name, None)))
                getattr(self.cupti, f"activity_enable_{kind}_api")(numbers[call], int(function == "activity_enable"))

    def _take(self, activities: list[Any]) -> None:
        """CUPTI's callback: copies out what we need, since the buffer is used again afterwards."""
        for activity in activities:
            record = _record(self.cupti, activity)
            if record is not None:
                self.records.append(record)


@functools.cache
def tracer() -> Tracer | None:
    """The tracer of this process; None where cupti-python is missing or does not fit the driver."""
    try:
        found = Tracer(importlib.import_module("cupti.cupti"))
        found.now()
    except Exception:  # an optional instrument: whatever is wrong with it, measuring goes on without
        return None
    return found


def _record(cupti: Any, activity: Any) -> Record | None:
    kinds, times = cupti.ActivityKind, (int(activity.start), int(activity.end))
    if activity.kind in (kinds.CONCURRENT_KERNEL, kinds.KERNEL):
        stream, graph, number = int(activity.stream_id), int(activity.graph_id), int(activity.correlation_id)
        return Record("kernel", str(activity.name), *times, stream=stream, graph=graph, number=number)
    if activity.kind in (kinds.DRIVER, kinds.RUNTIME):
        return Record("call", "launch", *times, number=int(activity.correlation_id))
    if activity.kind == kinds.MEMSET:
        stream, graph = int(activity.stream_id), int(activity.graph_id)
        return Record("memset", "memset", *times, bytes=int(activity.bytes), stream=stream, graph=graph)
    if activity.kind == kinds.MEMCPY:
        direction = cupti.ActivityMemcpyKind(activity.copy_kind).name
        kind = {"HTOD": "h2d", "DTOH": "d2h", "DTOD": "d2d"}.get(direction)
        if kind is None:
            return None
        host_side = activity.src_kind if kind == "h2d" else activity.dst_kind
        return Record(
            kind,
            kind,
            *times,
            bytes=int(activity.bytes),
            stream=int(activity.stream_id),
            graph=int(activity.graph_id),
            pageable=host_side == cupti.ActivityMemoryKind.PAGEABLE,
        )
    if activity.kind == kinds.SYNCHRONIZATION:
        kind = cupti.ActivitySynchronizationType(activity.type).name
        if kind == "STREAM_WAIT_EVENT":  # the device waits for the device
            return None
        return Record("wait", kind.lower(), *times, stream=int(activity.stream_id))
    return None
