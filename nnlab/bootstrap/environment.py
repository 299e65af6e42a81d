"""Finding or making the Python environment that lessons and tests run in."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

from nnlab.bootstrap import gpu, requirements
from nnlab.bootstrap.clone import Clone, SetupError
from nnlab.bootstrap.installer import pip_install, runs, say

EXTRAS = ("lab", "test")


def ready_python(clone: Clone, *extras: str, with_gpu: bool) -> Path:
    """A Python that has everything the clone needs, set up first where that is missing.

    An environment that satisfies the list already (conda, Colab, one's own) is used as it is.
    Raises SetupError with the reason and the cure.
    """
    running_own = Path(sys.prefix).resolve() == clone.venv.resolve()
    if not running_own and not requirements.missing(requirements.requirements(clone.root, *extras)):
        return Path(sys.executable)
    if not is_current(clone):
        make_venv(clone)
        install(clone)
    if with_gpu:
        gpu.add_cupy(clone)
    return clone.python


def is_current(clone: Clone) -> bool:
    """Was everything the clone asks for installed into its environment, and for this folder?"""
    return (
        clone.python.exists()
        and clone.stamp.is_file()
        and clone.stamp.read_text(encoding="utf-8") == fingerprint(clone)
    )


def fingerprint(clone: Clone) -> str:
    """Changes when the requirements or the pins change, or when the clone moves."""
    parts = (clone.root, requirements.requirements(clone.root, *EXTRAS), clone.pins.read_text(encoding="utf-8"))
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def make_venv(clone: Clone) -> None:
    """A virtual environment with pip in the clone's .venv; one that is whole is kept."""
    if clone.python.exists():
        _refuse_old(clone)
        if runs(clone.python, "-m", "pip", "--version"):
            return
    if importlib.util.find_spec("ensurepip") is None:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise SetupError(
            "this Python cannot make virtual environments, because its package for that is not installed. "
            f"On Debian and Ubuntu: sudo apt install python{version}-venv"
        )
    say(f"Making a Python environment in {clone.venv} ...")
    if subprocess.call([sys.executable, "-m", "venv", str(clone.venv)]):
        raise SetupError(
            f"`{sys.executable} -m venv {clone.venv}` failed; its message stands above. "
            "On Debian and Ubuntu the cure is often: sudo apt install python3-venv"
        )


def install(clone: Clone) -> None:
    """The pinned packages and the clone itself, editable: by uv, which takes seconds, or else by pip."""
    say("Installing the packages of the course (the first time takes about half a minute) ...")
    clone.stamp.unlink(missing_ok=True)
    project = f"{clone.root}[{','.join(EXTRAS)}]"
    if not pip_install(clone, "--constraint", str(clone.pins), "--editable", project):
        raise SetupError(
            "the packages could not be installed; the reason stands above. "
            "If it is the network, start the same command again: it goes on where it stopped"
        )
    clone.stamp.write_text(fingerprint(clone), encoding="utf-8")


def _refuse_old(clone: Clone) -> None:
    settings = clone.venv / "pyvenv.cfg"
    found = re.search(r"^version\w* *= *(\d+)\.(\d+)", settings.read_text(encoding="utf-8"), re.MULTILINE)
    if found and (int(found[1]), int(found[2])) < (3, 11):
        raise SetupError(
            f"{clone.venv} holds Python {found[1]}.{found[2]}, and nnlab needs 3.11 or newer. "
            "Remove that folder and start the same command again"
        )
