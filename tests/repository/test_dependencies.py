"""pyproject.toml is the one list; environment.yml and pins.txt keep in step with it, and each line gives its reason."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement

from nnlab.bootstrap.requirements import FORM

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CORE, EXTRAS = PROJECT["dependencies"], PROJECT["optional-dependencies"]
INSTALLED_BY_THE_COMMANDS = [*CORE, *EXTRAS["lab"], *EXTRAS["test"]]
PINS = [
    Requirement(line)
    for line in (ROOT / "pins.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]


def test_each_dependency_gives_its_reason() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for requirement in [*CORE, *(one for extra in EXTRAS.values() for one in extra)]:
        assert re.search(rf'^  "{re.escape(requirement)}", +# \S+ \S+', text, re.MULTILINE), requirement
    for line in (ROOT / "environment.yml").read_text(encoding="utf-8").splitlines():
        if line.lstrip().startswith("- ") and line.strip() not in {"- conda-forge", "- pip:"}:
            assert re.search(r" # \S+ \S+", line), line


def test_environment_yml_lists_what_pyproject_lists() -> None:
    yaml = pytest.importorskip("yaml")
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    python, pip, by_pip = environment["dependencies"]
    cupy = [requirement for requirement in EXTRAS["gpu"] if requirement.startswith("cupy")]
    assert python == f"python{PROJECT['requires-python']}"
    assert pip == "pip"
    assert by_pip == {"pip": ["-e .", *INSTALLED_BY_THE_COMMANDS, *cupy]}


def test_the_set_up_can_read_its_requirements() -> None:
    for requirement in INSTALLED_BY_THE_COMMANDS:
        assert FORM.fullmatch(requirement), requirement


def test_cupy_is_never_asked_for_on_macos_and_never_by_default() -> None:
    for requirement in INSTALLED_BY_THE_COMMANDS:
        assert "cup" not in requirement
    for requirement in map(Requirement, [*EXTRAS["gpu"], *EXTRAS["gpu13"]]):
        assert requirement.marker is not None
        assert not requirement.marker.evaluate({"sys_platform": "darwin"})


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
@pytest.mark.parametrize("system", ["linux", "darwin", "win32"])
def test_the_pins_hold_one_fitting_version_of_everything(python: str, system: str) -> None:
    here = {**default_environment(), "python_version": python, "python_full_version": f"{python}.0"}
    here |= {"sys_platform": system, "os_name": "nt" if system == "win32" else "posix"}
    pinned: dict[str, str] = {}
    for pin in PINS:
        if pin.marker is None or pin.marker.evaluate(here):
            assert pin.name not in pinned, f"{pin.name} is pinned twice"
            (version,) = pin.specifier
            assert version.operator == "=="
            pinned[pin.name] = version.version
    for requirement in map(Requirement, INSTALLED_BY_THE_COMMANDS):
        assert requirement.name in pinned, f"no pin for {requirement.name}: make pins.txt anew"
        assert requirement.specifier.contains(pinned[requirement.name]), requirement


def test_the_pins_name_no_host() -> None:
    text = (ROOT / "pins.txt").read_text(encoding="utf-8")
    assert "://" not in text
    assert not [line for line in text.splitlines() if line.startswith("-")]
