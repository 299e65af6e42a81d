"""Ctrl-C while training: finish the step, keep everything, then stop."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self


class Interrupts:
    """`with Interrupts() as interrupts:` holds Ctrl-C back; `interrupts.requested()` tells that it came.

    A second Ctrl-C raises KeyboardInterrupt at once. Outside the main thread Python delivers no signals, and
    nothing is held.
    """

    def __init__(self) -> None:
        self._came = False
        self._before: Any = None
        self._main = threading.current_thread() is threading.main_thread()

    def requested(self) -> bool:
        """Did Ctrl-C come since the block began?"""
        return self._came

    def __enter__(self) -> Self:
        if self._main:
            self._before = signal.signal(signal.SIGINT, self._hold)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._main:
            signal.signal(signal.SIGINT, self._before)

    def _hold(self, number: int, frame: FrameType | None) -> None:
        if self._came:
            raise KeyboardInterrupt
        self._came = True
