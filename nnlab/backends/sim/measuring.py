"""Receipts of a simulated GPU: its counts before and after, and the timeline in between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nnlab.backends.lines import line_of
from nnlab.backends.receipt import COUNTS, Receipt
from nnlab.backends.sim.gpu import Gpu
from nnlab.backends.sim.timeline import Log

_COUNTED = [name for name in COUNTS if name != "peak_bytes"]


@contextmanager
def measure(gpu: Gpu) -> Iterator[Receipt]:
    """Fill a receipt. Receipts may be nested; the inner one makes the device idle where it begins and ends."""
    timeline = gpu.timeline
    start = timeline.host = timeline.idle()
    before = {name: getattr(gpu, name) for name in _COUNTED}
    outer_log, outer_peak = timeline.log, gpu.peak
    log = timeline.log = Log(start)
    gpu.peak = gpu.used
    receipt = Receipt(modelled=True, home=gpu.home, events=log.events)
    try:
        yield receipt
    finally:
        timeline.host = timeline.idle()
        timeline.log = outer_log
        for name in _COUNTED:
            setattr(receipt, name, getattr(gpu, name) - before[name])
        receipt.peak_bytes = gpu.peak
        gpu.peak = max(outer_peak, gpu.peak)
        receipt.seconds = timeline.host - start
        if outer_log is not None:
            outer_log.take_over(log)
        receipt.left_out = log.left_out
        lines = [line_of(place, int(n), int(c), int(w), s) for place, (n, c, w, s) in log.spent.items()]
        receipt.lines = sorted(lines, key=lambda line: -line.seconds)
