"""The set-up: which Python is used, what is explained, and what is not done twice."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest

from nnlab.__main__ import refusal
from nnlab.bootstrap import environment, handover, requirements
from nnlab.bootstrap.clone import Clone, SetupError
from nnlab.bootstrap.run import job_environment
from nnlab.commands.test import pytest_arguments

PYPROJECT = """
[project]
dependencies = ["pytest>=8.0"]
[project.optional-dependencies]
lab = ["no-such-package-here>=1.0"]
test = ["pytest>=8.0,<1000"]
"""


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / "pins.txt").write_text("pytest==9.2.0\n")
    (tmp_path / "notebooks").mkdir()
    return Clone(tmp_path)


def pretend_installed(clone: Clone) -> None:
    """An environment that a set-up of exactly this clone has left behind."""
    clone.python.parent.mkdir(parents=True)
    clone.python.touch()
    clone.stamp.write_text(environment.fingerprint(clone))


def test_an_old_python_is_explained() -> None:
    text = refusal((3, 9, 6, "final", 0), "somewhere/python3")
    assert text is not None
    assert "needs Python 3.11 or newer; this is Python 3.9 at somewhere/python3" in text
    assert "python3.13 -m nnlab lab" in text
    assert refusal((3, 11, 0), "python3") is None
    assert refusal((4, 0, 0), "python3") is None


def test_an_environment_that_has_everything_is_used_as_it_is(clone: Clone) -> None:
    assert environment.ready_python(clone, "test", with_gpu=True) == Path(sys.executable)
    assert not clone.venv.exists()


def test_where_something_is_missing_the_clone_gets_its_own_environment(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = []
    monkeypatch.setattr(environment, "make_venv", lambda clone: done.append("venv"))
    monkeypatch.setattr(environment, "install", lambda clone: done.append("install"))
    assert environment.ready_python(clone, "lab", with_gpu=False) == clone.python
    assert done == ["venv", "install"]


def test_a_finished_set_up_is_not_done_again(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_installed(clone)
    monkeypatch.setattr(environment, "install", lambda clone: pytest.fail("installed twice"))
    assert environment.ready_python(clone, "lab", with_gpu=False) == clone.python


@pytest.mark.parametrize("changed", ["pins", "requirements", "place"])
def test_a_change_of_what_is_needed_is_noticed(clone: Clone, changed: str, tmp_path: Path) -> None:
    pretend_installed(clone)
    assert environment.is_current(clone)
    if changed == "pins":
        clone.pins.write_text("pytest==9.2.1\n")
    elif changed == "requirements":
        (clone.root / "pyproject.toml").write_text(PYPROJECT.replace("8.0", "8.1"))
    else:
        clone = Clone(clone.root.rename(tmp_path.parent / f"{tmp_path.name}-moved"))
    assert not environment.is_current(clone)


def test_a_python_without_venv_is_explained(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SetupError, match=r"sudo apt install python3\.\d+-venv"):
        environment.make_venv(clone)


def test_an_environment_of_an_old_python_is_refused(clone: Clone) -> None:
    pretend_installed(clone)
    (clone.venv / "pyvenv.cfg").write_text("home = somewhere\nversion = 3.9.6\n")
    with pytest.raises(SetupError, match=r"\.venv holds Python 3\.9.*Remove that folder"):
        environment.make_venv(clone)


def test_a_failed_installation_leaves_no_stamp(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_installed(clone)
    monkeypatch.setattr(environment, "pip_install", lambda clone, *arguments: False)
    with pytest.raises(SetupError, match=r"could not be installed.*network"):
        environment.install(clone)
    assert not environment.is_current(clone)


@pytest.mark.parametrize(
    ("requirement", "satisfied"),
    [
        ("pytest", True),
        ("pytest>=8.0", True),
        ("pytest>=8.0,<1000", True),
        ("pytest>=1000", False),
        ("pytest<8", False),
        ("no-such-package-here", False),
    ],
)
def test_requirements_are_compared_with_what_is_installed(requirement: str, satisfied: bool) -> None:
    assert requirements.missing([requirement]) == ([] if satisfied else [requirement])


@pytest.mark.parametrize(
    ("installed", "bound", "fits"),
    [
        ("2.0", ">=2", True),
        ("2", ">=2.0", True),
        ("2.10", ">=2.9", True),
        ("2.0rc1", ">=2.0", True),
        ("3.0", "<3", False),
    ],
)
def test_versions_are_compared_as_numbers(
    monkeypatch: pytest.MonkeyPatch, installed: str, bound: str, fits: bool
) -> None:
    monkeypatch.setattr(requirements.importlib.metadata, "version", lambda name: installed)
    assert (requirements.missing([f"thing{bound}"]) == []) is fits


def test_a_requirement_the_set_up_cannot_read_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"cannot read the requirement 'thing~=1\.0'"):
        requirements.missing(["thing~=1.0"])


def test_the_job_imports_this_clone(clone: Clone) -> None:
    assert job_environment(clone, {"A": "1"}) == {"A": "1", "PYTHONPATH": str(clone.root)}
    both = job_environment(clone, {"PYTHONPATH": "mine"})["PYTHONPATH"]
    assert both.split(os.pathsep) == [str(clone.root), "mine"]


def test_other_commands_move_into_the_environment_that_has_the_packages(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_installed(clone)
    started = []
    monkeypatch.setattr(handover.Clone, "here", lambda: clone)
    monkeypatch.setattr(handover, "start", lambda clone, python, arguments, *, folder: started.append(arguments) or 7)
    handover.hand_over(["doctor"])  # this Python has pytest, all that the clone needs
    handover.hand_over(["lab"])
    assert started == []
    (clone.root / "pyproject.toml").write_text(PYPROJECT.replace("pytest>=8.0", "no-such-package-here"))
    clone.stamp.write_text(environment.fingerprint(clone))
    with pytest.raises(SystemExit, match="7"):
        handover.hand_over(["doctor", "--json"])
    assert started == [["-m", "nnlab", "doctor", "--json"]]


@pytest.mark.parametrize(
    ("given", "everything"),
    [
        ([], True),
        (["-q", "-k", "notebooks"], True),
        (["-m", "not slow", "--maxfail=1"], True),
        (["notebooks"], False),
        (["-x", "pyproject.toml::test_name"], False),
    ],
)
def test_everything_is_tested_unless_paths_are_named(clone: Clone, given: list[str], everything: bool) -> None:
    arguments = pytest_arguments(clone, given)
    assert (arguments[-2:] == ["tests", "notebooks"]) is everything
    assert "--nbval" in arguments
    end = -2 if everything else None
    assert arguments[len(arguments[:end]) - len(given) : end] == given


def test_slow_tests_run_when_they_are_asked_for(clone: Clone) -> None:
    assert "not slow" in pytest_arguments(clone, ["-k", "kill"])
    assert "not slow" not in pytest_arguments(clone, ["-m", "slow"])
