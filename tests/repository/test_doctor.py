"""`nnlab doctor` says what works on this machine, and what must be mended."""

from __future__ import annotations

from typing import Any

import pytest

import nnlab
from nnlab.commands import checks


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
