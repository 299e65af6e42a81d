"""Installing packages into the clone's environment, and telling the user what goes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from nnlab.bootstrap.clone import Clone


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def pip_install(clone: Clone, *arguments: str) -> bool:
    """Install into the clone's environment with uv, or with pip where uv fails. True when it worked."""
    pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    uv = ("-m", "uv", "pip", "install", "--quiet", "--python", str(clone.python))
    has_uv = runs(clone.python, "-m", "uv", "--version") or _call(clone.python, *pip, "uv")
    if has_uv and _call(clone.python, *uv, *arguments):
        return True
    say("uv could not do it; trying pip, which takes longer ...")
    return _call(clone.python, *pip, *arguments)


def runs(python: Path, *arguments: str) -> bool:
    return subprocess.run([str(python), *arguments], capture_output=True, check=False).returncode == 0


def _call(python: Path, *arguments: str) -> bool:
    return subprocess.call([str(python), *arguments]) == 0
