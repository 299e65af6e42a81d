"""A stream and its events on a real card, counted like the simulated ones."""

from __future__ import annotations

import time
from typing import Any, Self

from nnlab.backends.cupy_graph import refuse_in_capture
from nnlab.backends.cupy_measure import meters


class CupyEvent:
    """A mark in a stream: other streams and the host can wait for all work before it."""

    def __init__(self, cupy: Any, event: Any) -> None:
        self._cupy, self.event = cupy, event

    @property
    def done(self) -> bool:
        """Has the device come that far by now?"""
        return bool(self.event.done)

    def synchronize(self) -> None:
        """Wait on the host until the work before the mark is done."""
        _wait(self._cupy, self.event)


class CupyStream:
    """A queue of its own for work on the device; `with stream:` makes it the one that takes the work."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self.stream = cupy.cuda.Stream(non_blocking=True)

    def __enter__(self) -> Self:
        self.stream.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.stream.__exit__(*error)

    @property
    def done(self) -> bool:
        """Is all its work done by now?"""
        return bool(self.stream.done)

    def synchronize(self) -> None:
        """Wait on the host until this stream's work is done."""
        _wait(self._cupy, self.stream)

    def record(self) -> CupyEvent:
        """A mark behind the work asked of this stream so far."""
        return CupyEvent(self._cupy, self.stream.record())

    def wait_event(self, event: CupyEvent) -> None:
        """Work asked of this stream from now on waits for the event; the host does not."""
        self.stream.wait_event(event.event)


def _wait(cupy: Any, waitable: Any) -> None:
    refuse_in_capture(cupy, "synchronize, a wait for the device,", "wait after graph.replay()")
    start = time.perf_counter()
    waitable.synchronize()
    for meter in meters:
        meter.waited(start)
