"""Filling in a receipt on a real card: what our doors and pool saw, and what the driver saw where CUPTI is there."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nnlab.backends.cupy_cupti import Record, tracer
from nnlab.backends.cupy_pools import DriverPool, current_pool, requested
from nnlab.backends.lines import learner_line
from nnlab.backends.receipt import Event, Receipt

PAGEABLE_WAITS_ABOVE = 2**20  # bytes; a larger upload from ordinary memory keeps the host until it is done
_MOST_EVENTS = 200_000

meters: list[Meter] = []  # measurements in progress; the doors report to all of them


class Meter:
    """One measurement: counts of what passed our doors, on the host's clock."""

    def __init__(self) -> None:
        self.start = time.perf_counter()
        self.events: list[Event] = []
        self.seconds = 0.0
        self.replays = 0
        self.upload_waits = 0
        self.counts = dict.fromkeys(
            ("h2d_copies", "h2d_bytes", "d2h_copies", "d2h_bytes", "syncs", "allocations", "pool_hits"), 0
        )

    def copied(self, kind: str, name: str, size: int, start: float, *, held: bool = False) -> None:
        """A copy ("h2d" or "d2h") of `size` bytes, asked for at `start` and returned from now; did the host wait?"""
        self.counts[f"{kind}_copies"] += 1
        self.counts[f"{kind}_bytes"] += size
        self.upload_waits += held
        self._add(kind, name, start, size)

    def waited(self, start: float) -> None:
        """An explicit wait."""
        self.counts["syncs"] += 1
        self._add("wait", "synchronize", start)

    def allocated(self, size: int, pool_had_it: bool) -> None:
        self.counts["pool_hits" if pool_had_it else "allocations"] += 1
        self._add("allocate", "pool hit" if pool_had_it else "allocate", time.perf_counter(), size)

    def replayed(self) -> None:
        self.replays += 1
        self._add("launch", "graph", time.perf_counter())

    def _add(self, kind: str, name: str, start: float, size: int = 0) -> None:
        now = time.perf_counter() - self.start
        self.events.append(Event(kind, name, "host", start - self.start, now, size, line=learner_line()))


@contextmanager
def measure(backend: Any) -> Iterator[Receipt]:
    """A receipt of the block, from an idle device to an idle device."""
    receipt, driver, pool = Receipt(home=backend.home), tracer(), current_pool()
    backend.wait()
    with pool.watch() as peak:
        if driver is None:
            with _metered() as meter:
                yield receipt
                backend.wait()
            receipt.launches = receipt.waits = None
        else:
            with driver.follow(backend.wait) as records, _metered() as meter:
                zero = driver.now()
                yield receipt
                driver.quietly(backend.wait)
        receipt.peak_bytes = peak()
    receipt.seconds = meter.seconds
    for name, count in meter.counts.items():
        setattr(receipt, name, count)
    if isinstance(pool, DriverPool):  # the driver does not tell whether its pool had the block
        receipt.pool_hits = None
    if driver is not None:
        _add_records(receipt, records, meter)
        _add_timeline(receipt, meter, records, zero)
    receipt.lines = None  # neither CUPTI nor CuPy tells which line of Python asked for a kernel


@contextmanager
def _metered() -> Iterator[Meter]:
    meter = Meter()
    meters.append(meter)
    requested.append(meter.allocated)
    try:
        yield meter
    finally:
        meter.seconds = time.perf_counter() - meter.start
        meters.remove(meter)
        requested.remove(meter.allocated)


@contextmanager
def upload() -> Iterator[None]:
    """Around an upload through our door. CuPy asks events of its own there whether its staging buffers are free; they
    are no waits for the device's work, which `Meter.copied` counts by the size of the copy."""
    driver = tracer() if meters else None
    start = driver.now() if driver is not None and driver.following else 0
    yield
    if start and driver is not None:
        driver.leave_out(start)


def _add_records(receipt: Receipt, records: list[Record], meter: Meter) -> None:
    """Counts that only the driver knows; replaying a graph is one launch, whatever is in it."""
    counted = [record for record in records if record.graph == 0]
    receipt.launches = meter.replays + sum(record.kind in ("kernel", "memset", "d2d") for record in counted)
    for kind in ("h2d", "d2h"):
        copies = [record.bytes for record in counted if record.kind == kind]
        setattr(receipt, f"{kind}_copies", len(copies))
        setattr(receipt, f"{kind}_bytes", sum(copies))
    held_up = (r for r in counted if r.kind == "h2d" and r.pageable and r.bytes > PAGEABLE_WAITS_ABOVE)
    waits = sum(record.kind == "wait" for record in counted)
    receipt.waits = waits + meter.upload_waits + sum(1 for _ in held_up)


def _add_timeline(receipt: Receipt, meter: Meter, records: list[Record], zero: int) -> None:
    events = [event for event in meter.events if event.kind != "wait"]  # CUPTI has all waits, ours among them
    calls = {record.number: record for record in records if record.kind == "call"}
    for record in records:
        start, end = (record.start - zero) / 1e9, (record.end - zero) / 1e9
        if record.kind in ("h2d", "d2h"):
            events.append(Event(record.kind, record.kind, "device", start, end, record.bytes, record.stream))
        elif record.kind == "wait":
            events.append(Event("wait", record.name, "host", start, end, stream=record.stream))
        elif record.kind != "call":
            name = operation_name(record.name if record.kind == "kernel" else record.kind)
            if record.graph == 0:  # without its call, a launch is shown where the device begins it
                call = calls.get(record.number, record._replace(end=record.start))
                asked, done = (call.start - zero) / 1e9, (call.end - zero) / 1e9
                events.append(Event("launch", name, "host", asked, done, stream=record.stream))
            events.append(Event("kernel", name, "device", start, end, record.bytes, record.stream))
    events.sort(key=lambda event: event.start)
    receipt.events, receipt.left_out = events[:_MOST_EVENTS], max(0, len(events) - _MOST_EVENTS)


def operation_name(kernel: str) -> str:
    """The operation behind a kernel: CuPy's own are called `cupy_multiply__float32_...`, others stay as they are."""
    ours = re.match(r"cupy_(\w+?)(?:__|$)", kernel)
    if ours:
        return ours[1]
    return "matmul" if re.search(r"gemm|gemv", kernel, re.IGNORECASE) else kernel
