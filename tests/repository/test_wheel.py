"""The wheel carries what an installed nnlab needs, and works away from the clone."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = {".py", ".toml", ".cu", ".css", ".mplstyle"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    builders = pytest.importorskip("hatchling.builders.wheel")
    folder = tmp_path_factory.mktemp("wheel")
    return Path(next(builders.WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])))


def test_every_source_and_data_file_is_in_the_wheel(wheel: Path) -> None:
    packed = set(zipfile.ZipFile(wheel).namelist())
    sources = {p.relative_to(ROOT).as_posix() for p in (ROOT / "nnlab").rglob("*") if p.suffix in SHIPPED}
    data = {f"nnlab/{p.relative_to(ROOT).as_posix()}" for p in (ROOT / "data").rglob("*") if p.is_file()}
    assert sources | data | {"nnlab/py.typed"} <= packed
    assert any(name.endswith("licenses/LICENSE") for name in packed)


def test_nothing_else_is_in_the_wheel(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"nnlab"}


def test_an_installed_package_finds_its_data(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from nnlab.datasets.files import SHA256, data_path\n"
        "for name in SHA256: print(data_path(name))"
    )
    answer = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert {Path(line).parent for line in answer.stdout.split()} == {(tmp_path / "nnlab" / "data").resolve()}
