"""The set-up finds the driver's CUDA version and adds the one CuPy that fits it."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import pytest

from nnlab.bootstrap import gpu
from nnlab.bootstrap.clone import Clone


class Driver:
    """Answers as the NVIDIA driver's library does: 0 is success, results go through pointers."""

    def __init__(self, *, version: int, cards: int = 1, start: int = 0) -> None:
        self.version, self.cards, self.start = version, cards, start

    def cuInit(self, flags: int) -> int:
        return self.start

    def cuDeviceGetCount(self, pointer: Any) -> int:
        return self._answer(pointer, self.cards)

    def cuDriverGetVersion(self, pointer: Any) -> int:
        return self._answer(pointer, self.version)

    @staticmethod
    def _answer(pointer: Any, value: int) -> int:
        ctypes.cast(pointer, ctypes.POINTER(ctypes.c_int))[0] = value
        return 0


def no_driver(library: str) -> Any:
    raise OSError(f"{library}: cannot open shared object file")


@pytest.mark.parametrize(("number", "version"), [(12080, (12, 8)), (13000, (13, 0)), (11020, (11, 2))])
def test_the_drivers_version_is_read(number: int, version: tuple[int, int]) -> None:
    assert gpu.driver_cuda_version(lambda library: Driver(version=number)) == version


def test_no_driver_no_card_and_a_broken_driver_are_no_gpu() -> None:
    assert gpu.driver_cuda_version(no_driver) is None
    assert gpu.driver_cuda_version(lambda library: Driver(version=12080, cards=0)) is None
    assert gpu.driver_cuda_version(lambda library: Driver(version=12080, start=999)) is None


@pytest.mark.parametrize(
    ("version", "major"), [((11, 8), None), ((12, 0), 12), ((12, 9), 12), ((13, 1), 13), ((14, 0), 13)]
)
def test_the_cupy_is_the_newest_the_driver_runs(version: tuple[int, int], major: int | None) -> None:
    assert gpu.supported_major(version) == major


def test_every_package_that_brings_cupy_is_recognised() -> None:
    names = ["numpy", "cupy-cuda12x", "CuPy-cuda13x", "cupy", "cupyx-tools", "cuda-pathfinder"]
    assert gpu.installed_cupy(names) == ["CuPy-cuda13x", "cupy", "cupy-cuda12x"]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """A card with a CUDA 13 driver, an environment without CuPy; what would be installed is noted here."""
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(gpu, "driver_cuda_version", lambda: (13, 0))
    monkeypatch.setattr(gpu, "_packages", lambda clone: ["numpy"])
    monkeypatch.setattr(gpu, "_report_missing_libraries", lambda clone, package: None)
    monkeypatch.setattr(gpu, "pip_install", lambda clone, *arguments: calls.append(arguments) or True)
    return calls


def test_the_fitting_cupy_is_added(installed: list[tuple[str, ...]], tmp_path: Path, capsys: Any) -> None:
    gpu.add_cupy(Clone(tmp_path))
    assert [call[-1] for call in installed] == [f"{tmp_path}[gpu13]"]
    assert "driver is for CUDA 13.0. Adding CuPy (cupy-cuda13x" in capsys.readouterr().err


def test_a_second_cupy_is_never_added(
    installed: list[tuple[str, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "_packages", lambda clone: ["cupy-cuda12x"])
    gpu.add_cupy(Clone(tmp_path))
    assert installed == []


def test_a_driver_that_is_too_old_is_explained(
    installed: list[tuple[str, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(gpu, "driver_cuda_version", lambda: (11, 4))
    gpu.add_cupy(Clone(tmp_path))
    assert installed == []
    assert "for CUDA 11.4. CuPy needs a driver for CUDA 12 or newer: update the driver" in capsys.readouterr().err


def test_without_network_the_lessons_still_start(
    installed: list[tuple[str, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(gpu, "pip_install", lambda clone, *arguments: False)
    gpu.add_cupy(Clone(tmp_path))
    assert "CuPy could not be installed, so the lessons use the simulated GPU" in capsys.readouterr().err
