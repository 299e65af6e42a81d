"""Where arrays live and how they move."""

from __future__ import annotations

import importlib
from typing import Any

from nnlab.backends.base import Array, Backend, Graph, Memory
from nnlab.backends.numpy_backend import NumpyBackend
from nnlab.backends.receipt import Event, Line, Receipt
from nnlab.backends.timing import Timing
from nnlab.errors import BackendUnavailable, UnknownName

__all__ = [
    "Array",
    "Backend",
    "Event",
    "Graph",
    "Line",
    "Memory",
    "NumpyBackend",
    "Receipt",
    "Timing",
    "available_backends",
    "backend",
    "backend_of",
    "gpu",
    "gpu_available",
    "home_of",
    "on_host",
]

# Each backend is loaded when it is first asked for; CuPy is imported by nothing else.
_HOMES = {
    "numpy": ("nnlab.backends.numpy_backend", "NumpyBackend"),
    "sim": ("nnlab.backends.sim.backend", "SimBackend"),
    "cupy": ("nnlab.backends.cupy_backend", "CupyBackend"),
}
_ARRAY_TYPES = {"numpy": "numpy", "cupy": "cupy", "nnlab": "sim"}  # package of an array's type -> backend


def backend(name: str, *, dtype: str = "float32", **options: Any) -> Backend:
    """The backend called `name`; floats on it are `dtype`. Raises UnknownName, BackendUnavailable.

    Options of "sim": device="h200" (a file in backends/devices), memory=bytes, pool="default", "none" or "async".
    Options of "cupy": memory=bytes and pool= alike; they set the card's pool for the whole process.
    """
    made: Backend = _home(name)(dtype=dtype, **options)
    return made


def gpu(*, dtype: str = "float32") -> Backend:
    """The real GPU if it can be used, else the simulated one; one printed line says which, and why.

    Two calls give the same home.
    """
    usable, reason = gpu_available()
    if usable:
        chosen = backend("cupy", dtype=dtype)
        print(f"nnlab.gpu(): {chosen.home}")
        return chosen
    simulated: Backend = _home("sim").shared(dtype=dtype)
    why = reason.split(". ")[0].rstrip(".")
    print(f"nnlab.gpu(): {simulated.home}, since no real one can be used here: {why}.")
    return simulated


def gpu_available() -> tuple[bool, str]:
    """Can CuPy run a kernel, a product and a random draw here? If not, the reason and the cure."""
    try:
        backend("cupy")
    except BackendUnavailable as problem:
        return False, str(problem)
    return True, "CuPy runs on this machine's GPU"


def available_backends() -> list[str]:
    """The names `backend` can serve on this machine."""
    return ["numpy", "sim", *(["cupy"] if gpu_available()[0] else [])]


def backend_of(array: Array) -> Backend:
    """The backend whose home holds `array`; its dtype is the array's where that is a floating type."""
    name = _ARRAY_TYPES.get(type(array).__module__.split(".")[0])
    if name is not None and hasattr(array, "dtype") and hasattr(array, "shape"):
        found: Backend = _home(name).holding(array)
        return found
    raise TypeError(f"{type(array).__name__} is not an array of any nnlab backend; make one with backend.asarray(...)")


def home_of(value: object) -> str:
    """Where a value lives, in words; what is no device array lives on the host."""
    try:
        return backend_of(value).home
    except TypeError:
        return "the host"


def on_host(value: Any) -> Any:
    """The value for code that works on the host: an array of a device in one copy, anything else as it is."""
    return value if home_of(value) == "the host" else backend_of(value).to_host(value)


def _home(name: str) -> Any:
    if not isinstance(name, str) or name not in _HOMES:
        raise UnknownName("backend", name, _HOMES)
    module, home = _HOMES[name]
    return getattr(importlib.import_module(module), home)
