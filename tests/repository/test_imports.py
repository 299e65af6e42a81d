"""Imports keep to the plan: light at the start, one way between the rooms, CuPy in one place."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import nnlab

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "nnlab"

BELOW_TRAINING = {"errors", "files", "backends", "nn", "optim", "engines"}
MAY_IMPORT = {
    "errors": set(),
    "files": set(),
    "bootstrap": set(),
    "backends": {"errors"},
    "nn": {"errors", "backends"},
    "optim": {"errors", "backends", "nn"},
    "engines": {"errors", "backends", "nn", "optim"},
    "training": BELOW_TRAINING,
    "tensor": {"errors", "backends"},
    "images": {"errors", "files", "backends", "nn"},
    "datasets": {"errors"},
    "lessons": {*BELOW_TRAINING, "training", "tensor", "images", "datasets"},
}
ON_TOP = {"__init__", "__main__", "cli", "commands"}


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_modules(path: Path) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything a file imports, inside functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write the import with its full name"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


FILES = sorted(PACKAGE.rglob("*.py"))


def test_every_room_has_its_rule() -> None:
    assert {room_of(path) for path in FILES} <= set(MAY_IMPORT) | ON_TOP


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_arrows_between_the_rooms_point_one_way(path: Path) -> None:
    room = room_of(path)
    if room in ON_TOP:
        return
    allowed = MAY_IMPORT[room] | {room, "__version__"}
    wrong = [
        f"line {line}: {name}"
        for line, name in imported_modules(path)
        if name.split(".")[0] == "nnlab" and (name.count(".") == 0 or name.split(".")[1] not in allowed)
    ]
    assert not wrong, f"{room} may import {sorted(allowed)}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_only_the_cupy_backend_imports_cupy(path: Path) -> None:
    gpu_packages = {"cupy", "cupyx", "cupy_backends", "cupti", "nvmath"}
    if room_of(path) == "backends" and path.relative_to(PACKAGE / "backends").parts[0].startswith("cupy_"):
        return
    assert not [name for _, name in imported_modules(path) if name.split(".")[0] in gpu_packages]


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if room_of(path) == "bootstrap"] + [PACKAGE / "__init__.py", PACKAGE / "__main__.py"],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_the_set_up_needs_nothing_but_python(path: Path) -> None:
    packages = {name.split(".")[0] for _, name in imported_modules(path)}
    assert packages <= sys.stdlib_module_names | {"nnlab"}


@pytest.mark.parametrize("statement", ["import nnlab", "import nnlab.cli; nnlab.cli.build_parser()"])
def test_importing_loads_nothing_heavy(statement: str) -> None:
    code = f"import sys; {statement}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    answer = subprocess.run([sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); {code}"],
                            capture_output=True, text=True, check=True)  # fmt: skip
    ours_and_pythons = sys.stdlib_module_names | {"nnlab", "__main__", "site", "sitecustomize", "usercustomize"}
    loaded = {name for name in answer.stdout.split() if not name.startswith("_")}
    heavy = {"numpy", "matplotlib", "PIL", "png", "psutil", "safetensors", "tqdm", "cupy", "ipywidgets", "numba"}
    assert "nnlab" in loaded
    assert not loaded & heavy
    assert len(loaded - ours_and_pythons) <= 3, "an editable install may add a finder or two, no more"


def test_every_room_of_the_plan_is_a_public_name() -> None:
    for room in MAY_IMPORT.keys() - {"files", "bootstrap"}:
        assert getattr(nnlab, room).__name__ == f"nnlab.{room}"


def test_the_first_file_is_readable_by_older_pythons() -> None:
    for name in ("__init__.py", "__main__.py"):
        ast.parse((PACKAGE / name).read_text(encoding="utf-8"), feature_version=(3, 7))


def test_every_room_is_reached_by_its_name() -> None:
    """After `import nnlab` alone, as lessons write it."""
    rooms = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
    inner = {"bootstrap", "commands"}  # the command line's own
    names = [f"nnlab.{room}" for room in rooms if room not in inner]
    assert "nnlab.tensor" in names
    subprocess.run([sys.executable, "-c", f"import nnlab; {'; '.join(names)}"], cwd=ROOT, check=True)
