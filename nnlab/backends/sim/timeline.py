"""Two lanes of modelled time: the host, and the device with its streams and its three engines."""

from __future__ import annotations

from collections import deque

from nnlab.backends.lines import learner_line
from nnlab.backends.receipt import Event

EVENT_LIMIT = 200_000
_COUNTED = {"launch": 0, "h2d": 1, "d2h": 1, "wait": 2}  # where a kind of event is counted in Log.spent
_new = tuple.__new__  # makes an Event without the call that NamedTuple puts around it


class StreamState:
    """A queue of work on the device: when its last piece ends, and when each pending launch ends."""

    __slots__ = ("number", "pending", "tail")

    def __init__(self, number: int) -> None:
        self.number = number
        self.tail = 0.0
        self.pending: deque[float] = deque()


class Timeline:
    """Modelled seconds. The host runs ahead of the device until it waits, or until the launch queue is full.

    Work in one stream runs in order; work of different streams overlaps only where it uses different engines
    (kernels, uploads, downloads).
    """

    def __init__(self, queue: int) -> None:
        self.host = 0.0
        self.queue = queue
        self.default = StreamState(0)
        self.streams = [self.default]
        self.engines = {"kernel": 0.0, "h2d": 0.0, "d2h": 0.0}
        self.log: Log | None = None

    def spend(self, kind: str, name: str, seconds: float, size: int = 0) -> None:
        """The host is busy for `seconds`."""
        start = self.host
        self.host = start + seconds
        if self.log is not None:
            self.log.add(kind, name, "host", start, self.host, size)

    def launch(self, name: str, host_seconds: float, seconds: float, stream: StreamState) -> None:
        """The host queues a kernel of `seconds`."""
        start = self.host
        end = start + host_seconds
        pending = stream.pending
        while pending and pending[0] <= end:
            pending.popleft()
        if len(pending) >= self.queue:
            end = pending.popleft()
        self.host = end
        if self.log is not None:
            self.log.add("launch", name, "host", start, end, 0, stream.number)
        pending.append(self.work("kernel", name, seconds, stream))

    def launch_graph(self, nodes: list[tuple[str, float]], host_seconds: float, stream: StreamState) -> None:
        """The host queues a whole graph in one launch; its kernels follow one another on the device."""
        start = self.host
        self.host = start + host_seconds
        if self.log is not None:
            self.log.add("launch", f"graph of {len(nodes)}", "host", start, self.host, 0, stream.number)
        for name, seconds in nodes:
            self.work("kernel", name, seconds, stream)

    def work(self, engine: str, name: str, seconds: float, stream: StreamState, size: int = 0) -> float:
        """The device does something, after what came before in its stream and on its engine; when it ends."""
        start = max(self.host, stream.tail, self.engines[engine])
        end = start + seconds
        stream.tail = self.engines[engine] = end
        if self.log is not None:
            self.log.add(engine, name, "device", start, end, size, stream.number)
        return end

    def wait(self, name: str, until: float, call: float = 0.0) -> None:
        """The host waits for the device, in a call that takes `call` seconds by itself."""
        start = self.host
        self.host = max(start + call, until)
        if self.log is not None:
            self.log.add("wait", name, "host", start, self.host)

    def idle(self) -> float:
        """When everything queued so far is done."""
        return max(self.host, *(stream.tail for stream in self.streams))

    def new_stream(self) -> StreamState:
        stream = StreamState(len(self.streams))
        self.streams.append(stream)
        return stream


class Log:
    """Events while a receipt is open, in seconds since `zero`, and what the host spent on each line of code."""

    def __init__(self, zero: float) -> None:
        self.zero = zero
        self.events: list[Event] = []
        self.left_out = 0
        self.spent: dict[tuple[str, int], list[float]] = {}
        self._line: tuple[str, int] | None = None  # of the last thing the host did; the device works for it

    def add(self, kind: str, name: str, lane: str, start: float, end: float, size: int = 0, stream: int = 0) -> None:
        """Note an event; the host's are charged to the line of the learner's code that runs now."""
        if lane == "host":
            line = self._line = learner_line(2)
            if line is not None:
                spent = self.spent.get(line)
                if spent is None:
                    spent = self.spent[line] = [0, 0, 0, 0.0]
                place = _COUNTED.get(kind)
                if place is not None:
                    spent[place] += 1
                spent[3] += end - start
        if len(self.events) < EVENT_LIMIT:
            zero = self.zero
            self.events.append(_new(Event, (kind, name, lane, start - zero, end - zero, size, stream, self._line)))
        else:
            self.left_out += 1

    def take_over(self, inner: Log) -> None:
        """Add the events and lines of a receipt that was nested in this one."""
        later = inner.zero - self.zero
        room = max(EVENT_LIMIT - len(self.events), 0)
        self.events += [
            event._replace(start=event.start + later, end=event.end + later) for event in inner.events[:room]
        ]
        self.left_out += inner.left_out + len(inner.events[room:])
        for line, spent in inner.spent.items():
            mine = self.spent.setdefault(line, [0, 0, 0, 0.0])
            mine[:] = [a + b for a, b in zip(mine, spent, strict=True)]
