"""Looking for an NVIDIA driver, and adding the CuPy that fits it."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Callable, Iterable
from typing import Any

from nnlab.bootstrap.clone import Clone
from nnlab.bootstrap.installer import pip_install, say

EXTRA_FOR_CUDA = {12: "gpu", 13: "gpu13"}
PACKAGE_FOR_CUDA = {12: "cupy-cuda12x", 13: "cupy-cuda13x"}


def driver_cuda_version(load: Callable[[str], Any] = ctypes.CDLL) -> tuple[int, int] | None:
    """The newest CUDA version the NVIDIA driver supports, such as (12, 8); None without a driver or a card.

    `load` opens the driver's library; tests put a stand-in here.
    """
    library = "nvcuda.dll" if os.name == "nt" else "libcuda.so.1"
    try:
        driver = load(library)
    except OSError:
        return None
    count, version = ctypes.c_int(0), ctypes.c_int(0)
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or count.value == 0:
        return None
    if driver.cuDriverGetVersion(ctypes.byref(version)):
        return None
    return version.value // 1000, version.value % 1000 // 10


def supported_major(version: tuple[int, int]) -> int | None:
    """The CUDA major version whose CuPy runs on a driver of this version; None where the driver is too old.

    Drivers run what was built for older majors, so a driver newer than we know gets the newest CuPy we know.
    """
    return max((major for major in EXTRA_FOR_CUDA if major <= version[0]), default=None)


def installed_cupy(names: Iterable[str]) -> list[str]:
    """The packages among `names` that provide CuPy; two of them in one environment break each other."""
    return sorted(name for name in names if name.lower() == "cupy" or name.lower().startswith("cupy-"))


def add_cupy(clone: Clone) -> None:
    """Add the CuPy that fits the driver to the clone's environment, if there is a card and no CuPy yet.

    A failure here ends nothing: every lesson runs on the simulated GPU too.
    """
    version = driver_cuda_version()
    if version is None:
        return
    major = supported_major(version)
    found = f"Found an NVIDIA GPU, its driver is for CUDA {version[0]}.{version[1]}."
    if major is None:
        say(f"{found} CuPy needs a driver for CUDA 12 or newer: update the driver to use the GPU.")
        return
    package = PACKAGE_FOR_CUDA[major]
    if not installed_cupy(_packages(clone)):
        say(f"{found} Adding CuPy ({package}, about 140 MB); `--no-gpu` leaves it out ...")
        project = f"{clone.root}[{EXTRA_FOR_CUDA[major]}]"
        if not pip_install(clone, "--constraint", str(clone.pins), "--editable", project):
            say("CuPy could not be installed, so the lessons use the simulated GPU.")
            return
        _report_missing_libraries(clone, package)


def _report_missing_libraries(clone: Clone, package: str) -> None:
    """CuPy compiles kernels with NVRTC and multiplies with cuBLAS; both come with the CUDA toolkit."""
    probe = "from cuda.pathfinder import load_nvidia_dynamic_lib as load; load('nvrtc'); load('cublas')"
    if subprocess.run([str(clone.python), "-c", probe], capture_output=True, check=False).returncode:
        say(
            "CuPy also needs NVRTC and cuBLAS of the CUDA toolkit, and they are not on this machine. "
            "This adds them (1.7 GB):\n"
            f'    "{clone.python}" -m uv pip install --python "{clone.python}" "{package}[ctk]"'
        )


def _packages(clone: Clone) -> list[str]:
    """The names of the packages in the clone's environment."""
    listing = "import importlib.metadata as m; print(*(d.name for d in m.distributions()))"
    answer = subprocess.run([str(clone.python), "-c", listing], capture_output=True, text=True, check=True)
    return answer.stdout.split()
