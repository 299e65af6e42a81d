"""What the clone needs, read from pyproject.toml, and what of it a Python already has.

The requirements written there keep to a simple form, `name>=1.2` or `name>=1.2,<3`, which a test guards;
so no package is needed to read them.
"""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path

FORM = re.compile(r"([A-Za-z0-9._-]+)((?:(?:>=|<)[0-9.]+,?)*)")


def requirements(root: Path, *extras: str) -> list[str]:
    """The core requirements of the clone at `root`, and those of the extras."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = list(project["dependencies"])
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    return wanted


def missing(wanted: list[str]) -> list[str]:
    """Those of the requirements that the running Python does not satisfy."""
    return [requirement for requirement in wanted if not _satisfied(requirement)]


def _satisfied(requirement: str) -> bool:
    form = FORM.fullmatch(requirement)
    if form is None:
        raise ValueError(f"cannot read the requirement {requirement!r}; write name>=1.2 or name>=1.2,<3")
    name, bounds = form.groups()
    try:
        installed = _numbers(importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return False
    for bound in filter(None, bounds.split(",")):
        limit = _numbers(bound.lstrip(">=<"))
        if (bound.startswith("<") and installed >= limit) or (bound.startswith(">=") and installed < limit):
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, without closing zeros: "2.4.0rc1" -> (2, 4)."""
    leading = re.match(r"[0-9]+(?:\.[0-9]+)*", version)
    parts = [int(part) for part in leading.group().split(".")] if leading else []
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)
