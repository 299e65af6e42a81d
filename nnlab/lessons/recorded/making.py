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
from nnlab.files import atomic_write

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


def write(folder: Path, name: str, record: dict[str, Any]) -> Path:
    """Write FOLDER/NAME.json, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    with atomic_write(path) as file:
        file.write((json.dumps(record) + "\n").encode())
    return path


def _card(b: Backend) -> str:
    properties = b.xp.cuda.runtime.getDeviceProperties(b.xp.cuda.runtime.getDevice())
    return str(properties["name"].decode())


def _driver(b: Backend) -> str | None:
    if b.name != "cupy":
        return None
    version = b.xp.cuda.runtime.driverGetVersion()
    return f"CUDA {version // 1000}.{version % 1000 // 10}"
