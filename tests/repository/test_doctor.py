"""`nnlab doctor` says what works on this machine, and what must be mended."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import nnlab
from nnlab import cli
from nnlab.bootstrap.requirements import missing
from nnlab.commands import checks
from nnlab.datasets import files

whole_machine = pytest.mark.skipif(
    bool(missing(checks.required_packages()[0])), reason="doctor rightly finds that packages of nnlab are missing here"
)


@whole_machine
def test_doctor_finds_this_machine_ready(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert text.endswith("Ready: every lesson runs on this machine.\n")
    for name in ("Python", "Packages", "Data files", "Machine", "Products", "Backends", "GPU"):
        assert f" {name} " in text
    assert "numpy works, sim works" in text


@whole_machine
def test_doctor_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ready"] is True
    assert [check["name"] for check in report["checks"]][-1] == "GPU"


@whole_machine
def test_doctor_reports_a_damaged_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(files.data_folder(), tmp_path / "data")
    (tmp_path / "data" / "email.csv").write_text("spam\n")
    monkeypatch.setattr(files, "CLONE", tmp_path / "data")
    monkeypatch.setattr(files, "INSTALLED", tmp_path / "nowhere")
    assert cli.main(["doctor"]) == 1
    out, err = capsys.readouterr()
    assert "'email.csv' was altered" in " ".join(out.split())
    assert err == "nnlab doctor: mend this first: Data files\n"


@pytest.mark.parametrize(("needed", "status"), [("core", "problem"), ("lab", "note")])
def test_doctor_names_what_is_missing(needed: str, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lists = {"core": ["pytest"], "lab": []}
    lists[needed] = ["no-such-package-here>=2.0"]
    monkeypatch.setattr(checks, "required_packages", lambda: (lists["core"], lists["lab"], []))
    check = checks.packages()
    assert check.status == status
    assert "no-such-package-here>=2.0" in check.text
    assert "python3 -m nnlab lab" in check.cure


def test_doctor_warns_of_two_cupys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "required_packages", lambda: (["pytest"], [], []))
    monkeypatch.setattr(checks, "installed_cupy", lambda names: ["cupy-cuda12x", "cupy-cuda13x"])
    check = checks.packages()
    assert check.status == "problem"
    assert "uninstall cupy-cuda12x" in check.cure


def test_doctor_survives_a_backend_that_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> Any:
        raise OSError("library is cut off")

    monkeypatch.setattr(nnlab, "backend", broken, raising=False)
    assert checks.backends().status == "problem"
    assert "numpy does not: library is cut off" in checks.backends().text


@pytest.mark.parametrize(("usable", "status"), [(True, "ok"), (False, "note")])
def test_doctor_ends_with_the_probe_of_the_gpu(usable: bool, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Card:
        home = "GPU 0 (a card)"

    monkeypatch.setattr(nnlab, "gpu_available", lambda: (usable, "no driver was found"), raising=False)
    monkeypatch.setattr(nnlab, "backend", lambda name: Card, raising=False)
    check = list(checks.all_checks())[-1]
    assert (check.name, check.status) == ("GPU", status)
    assert ("a kernel, a product and a random draw" in check.text) is usable
