"""What `nnlab doctor` looks at. Each check answers for one part of the machine, and none of them raises."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import nnlab
from nnlab.bootstrap.gpu import installed_cupy
from nnlab.bootstrap.requirements import missing

Status = Literal["ok", "note", "problem"]


@dataclass(frozen=True)
class Check:
    """status: "ok"; "note" where something optional is not there; "problem" where a lesson would fail.

    cure: what to do about it, where something can be done.
    """

    name: str
    status: Status
    text: str
    cure: str = ""


def all_checks() -> Iterator[Check]:
    """Every check in turn, the probe of the GPU last."""
    checks: tuple[tuple[str, Callable[[], Check]], ...] = (
        ("Python", python),
        ("nnlab", package),
        ("Packages", packages),
        ("Data files", data_files),
        ("Machine", machine),
        ("Products", products),
        ("Backends", backends),
        ("GPU", gpu_probe),
    )
    for name, check in checks:
        try:
            yield check()
        except Exception as error:  # a broken package can fail in any way, and doctor must tell, not fall over
            yield Check(
                name, "problem", f"{type(error).__name__}: {error}", "Once the packages are right, run it again."
            )


def python() -> Check:
    return Check("Python", "ok", f"{platform.python_version()} on {platform.platform()}, {sys.executable}")


def package() -> Check:
    return Check("nnlab", "ok", f"{nnlab.__version__} in {Path(nnlab.__file__).parent}")


def packages() -> Check:
    """The core packages must be there; JupyterLab and its company only where lessons are read."""
    core, lab, others = required_packages()
    lacking, without_lab = missing(core), missing(lab)
    cupys = installed_cupy(str(found.name) for found in importlib.metadata.distributions())
    text = ", ".join(_versions([*core, *lab, *others, *cupys])) or "none"
    if lacking:
        cure = "In the clone, `python3 -m nnlab lab` installs everything."
        return Check("Packages", "problem", f"{text}; missing or too old: {', '.join(lacking)}", cure)
    if len(cupys) > 1:
        cure = f"Remove all but one: python -m pip uninstall {cupys[0]}"
        return Check("Packages", "problem", f"{text}; several packages bring CuPy and break each other", cure)
    if without_lab:
        cure = "To read the lessons in JupyterLab, start `python3 -m nnlab lab` in the clone."
        return Check("Packages", "note", f"{text}; not here: {', '.join(without_lab)}", cure)
    return Check("Packages", "ok", text)


def required_packages() -> tuple[list[str], list[str], list[str]]:
    """The requirements of nnlab itself, of its extra "lab", and of what is optional, as its metadata lists them."""
    root = Path(nnlab.__file__).parent.parent
    if (root / "pyproject.toml").is_file():
        from nnlab.bootstrap.requirements import requirements

        core = requirements(root)
        return core, requirements(root, "lab")[len(core) :], requirements(root, "fast")[len(core) :]
    listed = importlib.metadata.requires("nnlab") or []
    parts = [[requirement for requirement in listed if "extra" not in requirement]]
    for extra in ("lab", "fast"):
        belongs = re.compile(rf"extra == ['\"]{extra}['\"]")
        parts.append([requirement.split(";")[0].strip() for requirement in listed if belongs.search(requirement)])
    core, lab, others = parts
    return core, lab, others


def data_files() -> Check:
    from nnlab.datasets.files import SHA256, data_path
    from nnlab.errors import DataFileError

    faults = []
    for name in sorted(SHA256):
        try:
            data_path(name)
        except DataFileError as error:
            faults.append(str(error))
    if faults:
        return Check("Data files", "problem", " ".join(faults))
    return Check("Data files", "ok", f"all {len(SHA256)} are whole: {', '.join(sorted(SHA256))}")


def machine() -> Check:
    import psutil

    memory = psutil.virtual_memory()
    gib = 2**30
    text = f"{os.cpu_count()} cores, {memory.total / gib:.1f} GiB of memory, {memory.available / gib:.1f} GiB free"
    if memory.available < gib:
        return Check("Machine", "note", text, "Lessons need about 1 GiB: close other programs if one is slow.")
    return Check("Machine", "ok", text)


def products() -> Check:
    """Which library multiplies NumPy's matrices: it decides the speed of every CPU lesson."""
    import numpy as np

    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return Check("Products", "ok", f"NumPy multiplies matrices with {blas['name']} {blas['version']}")


def backends() -> Check:
    """A product on every backend that needs no GPU."""
    working, faults = [], []
    for name in ("numpy", "sim"):
        try:
            b = nnlab.backend(name)
            a = b.asarray([[1.0, 2.0], [3.0, 4.0]])
            if b.to_host(b.matmul(a, a)).tolist() != [[7.0, 10.0], [15.0, 22.0]]:
                raise ArithmeticError("a 2 x 2 product came out wrong")
            working.append(f"{name} works")
        except Exception as error:  # the reason is what the user needs, whatever it is
            faults.append(f"{name} does not: {error}")
    return Check("Backends", "problem" if faults else "ok", ", ".join(working + faults))


def gpu_probe() -> Check:
    """A kernel, a product and a random draw on the real card."""
    usable, reason = nnlab.gpu_available()
    if usable:
        return Check("GPU", "ok", f"{nnlab.backend('cupy').home}: a kernel, a product and a random draw work")
    return Check("GPU", "note", reason, "No lesson needs one: they use the simulated GPU instead.")


def _versions(requirements: list[str]) -> Iterator[str]:
    for requirement in requirements:
        name = re.split(r"[<>=;\s]", requirement)[0]
        try:
            yield f"{name} {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            continue
