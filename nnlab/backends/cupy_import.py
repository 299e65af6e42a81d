"""Is there a GPU that CuPy can use, and if not, why not and what to do.

CuPy imports without a driver and without CUDA's compilers, so only work done on the card proves anything: the probe
runs one kernel, one matrix product and one random draw.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import os
from typing import Any

from nnlab.errors import BackendUnavailable

_ONE_CUPY = (
    "The CuPy package must match the CUDA major version of the driver (nvidia-smi shows it: cupy-cuda12x for CUDA 12, "
    "cupy-cuda13x for CUDA 13), and only one CuPy package may be installed."
)
_NO_GPU = "To go on without a GPU: nnlab.backend('sim') simulates one, and nnlab.gpu() picks what there is."


class _Probe:
    """What the probe found, and in which process: CUDA does not survive a fork."""

    outcome: BackendUnavailable | None = None
    process: int | None = None


def load_cupy() -> Any:
    """The cupy module, on a card that has been seen to work. Raises BackendUnavailable with the reason and the cure."""
    check_process()
    if _Probe.process is None:
        _Probe.outcome = _probe()
        _Probe.process = os.getpid()
    if _Probe.outcome is not None:
        raise BackendUnavailable(*_Probe.outcome.args) from _Probe.outcome.__cause__
    return importlib.import_module("cupy")


@functools.cache
def card_name(cupy: Any, device: int) -> str:
    """What the card calls itself, such as "NVIDIA H200"."""
    name = cupy.cuda.runtime.getDeviceProperties(device)["name"]
    return name.decode() if isinstance(name, bytes) else str(name)


def check_process() -> None:
    """Raise BackendUnavailable in a process forked from one that had used the card: CUDA does not work there."""
    if _Probe.process is not None and _Probe.process != os.getpid() and _Probe.outcome is None:
        raise BackendUnavailable(
            f"process {os.getpid()} was forked from process {_Probe.process} after that one had used the GPU, and CUDA "
            "cannot be used in such a copy. Start workers with multiprocessing.get_context('spawn'), or fork before "
            "the first use of the GPU."
        )


def _probe() -> BackendUnavailable | None:
    try:
        cupy = importlib.import_module("cupy")
    except ModuleNotFoundError as error:
        if error.name == "cupy":
            return _because(f"CuPy is not installed. Install the package for your card. {_ONE_CUPY}", error)
        return _because(_broken(error), error)
    except Exception as error:
        return _because(_broken(error), error)
    try:
        if cupy.cuda.runtime.getDeviceCount() < 1:
            return _because("CuPy is installed, but finds no NVIDIA GPU.", None)
        ones = cupy.ones((2, 2), dtype="float32")
        product = ones @ (ones + ones)
        draw = cupy.random.default_rng(0).random(2)
        if float(product.sum()) != 16.0 or not 0.0 <= float(draw.sum()) <= 2.0:
            return _because("The GPU answers, but calculates wrongly: 2 x 2 ones gave a wrong product.", None)
    except Exception as error:
        return _because(_unusable(error), error)
    return None


def _because(reason: str, cause: Exception | None) -> BackendUnavailable:
    unavailable = BackendUnavailable(f"{reason} {_NO_GPU}")
    unavailable.__cause__ = cause
    return unavailable


def _broken(error: Exception) -> str:
    return f"CuPy is installed, but cannot be imported ({_first_line(error)}).{_doubled()} {_ONE_CUPY}"


def _unusable(error: Exception) -> str:
    """Why the card cannot be used, from the error that CuPy raised on its first work."""
    text = f"{type(error).__name__}: {error}"
    if "InsufficientDriver" in text or "NoDevice" in text:
        return f"There is no NVIDIA driver, or one too old for this CuPy ({_first_line(error)}).{_doubled()}"
    if "nvrtc" in text.lower() or "DynamicLibNotFound" in text or isinstance(error, ImportError):
        return (
            f"CuPy is installed, but a CUDA library is missing ({_first_line(error)}). Install CUDA's libraries with "
            f"CuPy, as in: pip install 'cupy-cuda12x[ctk]'.{_doubled()} {_ONE_CUPY}"
        )
    return f"CuPy is installed, but the GPU does not work ({_first_line(error)}).{_doubled()} {_ONE_CUPY}"


def _doubled() -> str:
    """A sentence about CuPy packages that are installed beside each other; empty where there is only one."""
    names = (str(found.metadata["Name"]) for found in importlib.metadata.distributions())
    installed = sorted({name for name in names if name == "cupy" or name.startswith(("cupy-cuda", "cupy-rocm"))})
    if len(installed) < 2:
        return ""
    return f" {len(installed)} CuPy packages are installed: remove all with pip uninstall {' '.join(installed)}."


def _first_line(error: Exception) -> str:
    """The line of an error's text that says something; CuPy frames its import errors with rules."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" =-\t")]
    original = next((line for line in lines if ": " in line and "Error" in line), None)
    return original or (lines[0] if lines else type(error).__name__)
