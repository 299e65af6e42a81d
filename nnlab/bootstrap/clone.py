"""Where things lie in a clone, and the error that ends a set-up."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


class SetupError(RuntimeError):
    """The set-up cannot go on; the message says why and what to do."""


@dataclass(frozen=True)
class Clone:
    """A clone of the repository at `root`."""

    root: Path

    @classmethod
    def here(cls) -> Clone:
        """The clone this package is run from. Raises SetupError where nnlab was installed without its clone."""
        root = Path(__file__).resolve().parent.parent.parent
        if not (root / "pyproject.toml").is_file() or not (root / "notebooks").is_dir():
            raise SetupError(
                f"the lessons are not beside the package in {root}. "
                "Run this command in a clone of the repository: python3 -m nnlab lab"
            )
        return cls(root)

    @property
    def venv(self) -> Path:
        return self.root / ".venv"

    @property
    def python(self) -> Path:
        """The interpreter of the clone's own environment, made or not."""
        return self.venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    @property
    def stamp(self) -> Path:
        """What was installed into the environment, written when all of it was."""
        return self.venv / "nnlab-installed.txt"

    @property
    def pins(self) -> Path:
        return self.root / "pins.txt"

    @property
    def notebooks(self) -> Path:
        return self.root / "notebooks"

    @property
    def course(self) -> Path:
        """The learner's working copy of the lessons; git ignores it."""
        return self.root / "my-course"
