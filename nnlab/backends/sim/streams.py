"""Streams and their events on the simulated GPU. Values are computed at once; only the times follow the streams."""

from __future__ import annotations

from typing import Self

from nnlab.backends.sim.gpu import Gpu


class SimEvent:
    """A moment in a stream: when all work asked of it so far is done."""

    def __init__(self, gpu: Gpu, time: float) -> None:
        self._gpu, self._time = gpu, time

    @property
    def done(self) -> bool:
        """Has the device come that far by now?"""
        return self._time <= self._gpu.timeline.host

    def synchronize(self) -> None:
        """Wait until the device has come that far."""
        self._gpu.synchronize("event.synchronize", self._time)


class SimStream:
    """A queue of work on the device. `with stream:` makes it the one that takes the work."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._state = gpu.timeline.new_stream()
        self._before: list[object] = []

    def __enter__(self) -> Self:
        self._before.append(self._gpu.stream)
        self._gpu.stream = self._state
        return self

    def __exit__(self, *error: object) -> None:
        self._gpu.stream = self._before.pop()  # type: ignore[assignment]

    @property
    def done(self) -> bool:
        """Is all its work done by now?"""
        return self._state.tail <= self._gpu.timeline.host

    def synchronize(self) -> None:
        """Wait for this stream alone."""
        self._gpu.synchronize("stream.synchronize", self._state.tail)

    def record(self) -> SimEvent:
        """An event after the work asked of this stream so far."""
        return SimEvent(self._gpu, max(self._state.tail, self._gpu.timeline.host))

    def wait_event(self, event: SimEvent) -> None:
        """Later work in this stream waits for the event; the host does not."""
        self._state.tail = max(self._state.tail, event._time)
