"""Saving while training: the newest state always on disk, and as many older ones as wanted."""

from __future__ import annotations

import os
import shutil
from itertools import pairwise
from pathlib import Path

from nnlab.optim import TrainState
from nnlab.training.checkpoint import save_checkpoint


class Checkpoint:
    """A callback that saves the run: at logs, and when it ends, by Ctrl-C or an error too.

    path: always the newest checkpoint; the ones before it are NAME.1.safetensors (one save older), NAME.2..., up to
    `keep` files in all. every: steps between two saves; the run is saved at the first log at or after each multiple
    of it, or at every log for None.
    """

    def __init__(self, path: str | os.PathLike[str], *, every: int | None = None, keep: int = 1) -> None:
        if keep < 1 or (every is not None and every < 1):
            raise ValueError(f"every and keep must be whole numbers from 1, not {every!r} and {keep!r}")
        self.path = Path(path)
        self.every, self.keep = every or 1, keep
        self._last = 0
        self._saved: int | None = None

    def on_start(self, state: TrainState) -> None:
        self._last = state.step
        self._saved = state.step if state.step and self.path.exists() else None  # a resumed run is on disk already

    def on_checkpoint(self, state: TrainState) -> None:
        if state.step // self.every > self._last // self.every:
            self._save(state)

    def on_end(self, state: TrainState) -> None:
        if state.step != self._saved:
            self._save(state)

    def _save(self, state: TrainState) -> None:
        self._keep_older()
        save_checkpoint(self.path, state)
        self._saved = self._last = state.step

    def _keep_older(self) -> None:
        """Give every file the name of the next older one; `path` itself stays in place until it is replaced."""
        names = [self.path, *(self.path.with_suffix(f".{age}{self.path.suffix}") for age in range(1, self.keep))]
        for newer, older in reversed(list(pairwise(names))):
            if not newer.exists():
                continue
            if newer != self.path:
                os.replace(newer, older)
                continue
            older.unlink(missing_ok=True)
            try:
                os.link(newer, older)
            except OSError:  # a file system without links
                shutil.copyfile(newer, older)
