"""How a recording is made and kept: with everything that somebody needs to make it again."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
from pathlib import Path
from typing import Any

from nnlab import __version__
from nnlab.backends import Backend
from nnlab.files import atomic_write, check_target
from nnlab.training import History

PACKAGES = ("numpy", "cupy-cuda12x", "cupy-cuda13x", "cupti-python", "torch", "jax")


def made_here(b: Backend, command: str) -> dict[str, Any]:
    """Card, host, driver, versions, date (UTC) and the command, as a recording's "made"."""
    versions = {"nnlab": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "card": b.home if b.name != "cupy" else _card(b),
        "driver": _driver(b),
        "host": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "versions": versions,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": command,
    }


def whole(history: History) -> History:
    """The history of a run that took all its steps. Raises KeyboardInterrupt for one that Ctrl-C ended before."""
    if history.interrupted:
        raise KeyboardInterrupt
    return history


def check(path: Path) -> None:
    """Raise OSError, naming the cure, where `path` cannot be written. Folders may be missing: they will be made."""
    there = next(folder for folder in path.absolute().parents if folder.exists())
    if not there.is_dir():
        raise NotADirectoryError(f"{there}: is a file; name a folder, which is made where there is none")
    if not os.access(there, os.W_OK):
        raise PermissionError(f"{there}: you may not write in this folder; choose another")
    if there == path.absolute().parent:
        check_target(path)


def write(path: Path, record: dict[str, Any]) -> None:
    """Write a recording, whole or not at all, and make its folder where there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write((json.dumps(record) + "\n").encode())


def _card(b: Backend) -> str:
    properties = b.xp.cuda.runtime.getDeviceProperties(b.xp.cuda.runtime.getDevice())
    return str(properties["name"].decode())


def _driver(b: Backend) -> str | None:
    if b.name != "cupy":
        return None
    version = b.xp.cuda.runtime.driverGetVersion()
    return f"CUDA {version // 1000}.{version % 1000 // 10}"
