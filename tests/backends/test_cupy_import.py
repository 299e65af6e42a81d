"""CuPy that is missing, broken, doubled or without a card: the reason, the cure, the original error (case D-07)."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

import nnlab
from nnlab.backends import cupy_import
from nnlab.errors import BackendUnavailable, UnknownName


@pytest.fixture
def fake_cupy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Puts a module called cupy with the given source on the path, for this test only."""

    def install(source: str) -> None:
        for name in [name for name in sys.modules if name.split(".")[0] == "cupy"]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setattr(cupy_import._Probe, "process", None)
        monkeypatch.setattr(cupy_import._Probe, "outcome", None)
        (tmp_path / "cupy.py").write_text(source)
        monkeypatch.syspath_prepend(tmp_path)

    yield install
    sys.modules.pop("cupy", None)


BROKEN = 'raise ImportError("libnvrtc.so.11.2: cannot open shared object file: No such file or directory")'
MISSING = 'raise ModuleNotFoundError("No module named \'cupy\'", name="cupy")'
NO_DRIVER = """
class cuda:
    class runtime:
        @staticmethod
        def getDeviceCount():
            raise RuntimeError("cudaErrorInsufficientDriver: CUDA driver version is insufficient")
"""
NO_NVRTC = """
class cuda:
    class runtime:
        getDeviceCount = staticmethod(lambda: 1)
def ones(*a, **k):
    raise RuntimeError('DynamicLibNotFoundError: Failure finding "libnvrtc.so"')
"""
WRONG = """
import numpy
class cuda:
    class runtime:
        getDeviceCount = staticmethod(lambda: 1)
ones = numpy.zeros
random = numpy.random
"""


@pytest.mark.parametrize(
    ("source", "reason", "cure", "cause"),
    [
        (BROKEN, "libnvrtc.so.11.2", "must match the CUDA major version", ImportError),
        (MISSING, "not installed", "cupy-cuda12x", ModuleNotFoundError),
        (NO_DRIVER, "no NVIDIA driver", "nnlab.backend('sim')", RuntimeError),
        (NO_NVRTC, "a CUDA library is missing", "cupy-cuda12x[ctk]", RuntimeError),
        (WRONG, "calculates wrongly", "nnlab.gpu()", type(None)),
    ],
)
def test_the_reason_the_cure_and_the_original_error(fake_cupy, source, reason, cure, cause):
    fake_cupy(source)
    with pytest.raises(BackendUnavailable) as caught:
        nnlab.backend("cupy")
    assert reason in str(caught.value)
    assert cure in str(caught.value)
    assert isinstance(caught.value.__cause__, cause)
    usable, why = nnlab.gpu_available()
    assert not usable
    assert reason in why


def test_only_one_cupy_may_be_installed(fake_cupy, monkeypatch):
    class Found:
        def __init__(self, name: str) -> None:
            self.metadata = {"Name": name}

    packages = [Found("numpy"), Found("cupy-cuda12x"), Found("cupy-cuda13x")]
    monkeypatch.setattr(importlib.metadata, "distributions", lambda: packages)
    fake_cupy(BROKEN)
    with pytest.raises(BackendUnavailable, match=r"2 CuPy packages are installed.*uninstall cupy-cuda12x cupy-cuda13x"):
        nnlab.backend("cupy")


def test_the_host_needs_no_cupy(fake_cupy):
    fake_cupy(BROKEN)
    assert nnlab.backend("numpy").name == "numpy"


def test_nothing_imports_cupy_before_it_is_asked_for():
    code = "import nnlab, sys; nnlab.backend('numpy').asarray([1.0]); assert 'cupy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(nnlab.__file__).parents[1])


def test_only_the_cupy_files_import_cupy():
    package = Path(nnlab.__file__).parent
    for path in package.rglob("*.py"):
        if not path.name.startswith("cupy_"):
            lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
            assert not [line for line in lines if line.startswith(("import cupy", "from cupy"))], path


def test_a_process_forked_after_the_first_use_is_told_so(monkeypatch):
    monkeypatch.setattr(cupy_import._Probe, "process", os.getpid() + 1)
    monkeypatch.setattr(cupy_import._Probe, "outcome", None)
    with pytest.raises(BackendUnavailable, match=r"was forked from process \d+ after .*'spawn'"):
        cupy_import.check_process()


def test_an_unknown_backend_names_the_nearest():
    with pytest.raises(UnknownName, match="Did you mean 'cupy'"):
        nnlab.backend("cuppy")
