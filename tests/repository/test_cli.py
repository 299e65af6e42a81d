"""The command line: exit status 0 only for a job done, one clear line for an error, a traceback on request."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nnlab import cli
from nnlab.commands import doctor
from nnlab.commands import test as test_command
from nnlab.errors import DataFileError, DeviceOutOfMemory, EngineCannot

ROOT = Path(__file__).resolve().parents[2]


def failing_with(error: BaseException) -> Any:
    def run(arguments: argparse.Namespace) -> int:
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (DataFileError("data file 'x.csv' is missing"), "nnlab doctor: data file 'x.csv' is missing"),
        (ValueError("two\nlines"), "nnlab doctor: two lines"),
        (ModuleNotFoundError("No module named 'png'", name="png"), "nnlab doctor: the package png is not installed; in "
         "the clone, `python3 -m nnlab lab` installs everything"),
        (KeyError("rate"), "nnlab doctor: KeyError: 'rate' (--debug shows where)"),
        (EngineCannot("graph cannot"), "nnlab doctor: graph cannot"),
        (DeviceOutOfMemory("asked 5"), "nnlab doctor: asked 5"),
        (MemoryError(), "nnlab doctor: this needs more memory than there is; ask for a smaller size (MemoryError)"),
        (RuntimeError(), "nnlab doctor: RuntimeError: no message (--debug shows where)"),
    ],
)  # fmt: skip
def test_an_error_is_one_line_on_stderr(
    error: Exception, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "run", failing_with(error))
    assert cli.main(["doctor"]) == 1
    assert capsys.readouterr() == ("", line + "\n")


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(doctor, "run", failing_with(ValueError("bad rate")))
    assert cli.main(["doctor", "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_ctrl_c_is_no_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(doctor, "run", failing_with(KeyboardInterrupt()))
    assert cli.main(["doctor"]) == 130
    assert capsys.readouterr().err == "nnlab doctor: stopped\n"


@pytest.mark.parametrize("argv", [["docter"], ["doctor", "--jsn"], ["doctor", "--js"]])
def test_a_wrong_call_is_status_2(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(argv)
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert argv[-1] in err
    assert "--help shows how)" in err


def test_pytest_gets_the_other_arguments_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(test_command, "run", lambda arguments: seen.append((arguments.no_gpu, arguments.rest)) or 0)
    assert cli.main(["test", "-k", "a or b", "--no-gpu", "tests/nn", "-m", "not slow", "-x"]) == 0
    assert seen == [(True, ["-k", "a or b", "tests/nn", "-m", "not slow", "-x"])]


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    assert doctor.HELP in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="Windows has no broken pipes")
def test_a_reader_that_leaves_early_is_no_error() -> None:
    command = f'"{sys.executable}" -m nnlab doctor'
    with subprocess.Popen(
        command, shell=True, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as job:
        assert job.stdout is not None
        assert job.stderr is not None
        job.stdout.close()
        assert job.stderr.read() == ""
