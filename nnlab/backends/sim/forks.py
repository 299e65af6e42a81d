"""A GPU does not survive a fork: a child process that was forked after one was used must not touch it."""

from __future__ import annotations

import os


class Process:
    """forked: this process was forked from one that had made a simulated GPU."""

    forked = False
    watched = False

    def watch(self) -> None:
        """A GPU is made in this process: its forks are to be told apart."""
        if not self.watched and hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._mark)
            self.watched = True

    def _mark(self) -> None:
        self.forked = True


process = Process()
