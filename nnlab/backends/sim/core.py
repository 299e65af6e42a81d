"""What every part of the simulated GPU knows about its arrays, and how it refuses what is none of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnlab.backends.sim.gpu import Gpu
from nnlab.backends.sim.pools import Lease
from nnlab.errors import MixedBackendError

SCALARS = (int, float, complex, bool, np.generic)


class DeviceArray:
    """A device array: `_data` is NumPy's view of the device memory that `_lease` keeps, `_gpu` the home."""

    __slots__ = ("__weakref__", "_data", "_gpu", "_lease")

    _data: np.ndarray
    _gpu: Gpu
    _lease: Lease | None


def gpu_of(name: str, *values: Any) -> Gpu:
    """The one home of all arrays among `values`. Raises MixedBackendError, TypeError."""
    gpu: Gpu | None = None
    for position, value in enumerate(values, 1):
        if isinstance(value, DeviceArray):
            if gpu is None:
                gpu = value._gpu
            elif gpu is not value._gpu:
                raise refusal(gpu, name, position, value)
    if gpu is None:
        raise TypeError(f"{name} needs at least one device array; make one with backend.asarray(...)")
    return gpu


def unwrap(gpu: Gpu, name: str, value: Any, position: int = 1) -> Any:
    """The NumPy view behind a device array of this home, or a Python or NumPy scalar as it is."""
    if isinstance(value, DeviceArray):
        if value._gpu is not gpu:
            raise refusal(gpu, name, position, value)
        return value._data
    if isinstance(value, SCALARS):
        return value
    raise refusal(gpu, name, position, value)


def refusal(gpu: Gpu, name: str, position: int, value: object) -> TypeError:
    """The error for an operand that does not live on `gpu`: MixedBackendError for an array, else TypeError."""
    operand = f"operand {position} of {name}"
    if isinstance(value, DeviceArray):
        return MixedBackendError(
            f"{operand} lives on {value._gpu.home}, but is needed on {gpu.home}; "
            "move it with: backend.asarray(its_backend.to_host(array))"
        )
    if isinstance(value, np.ndarray):
        return MixedBackendError(
            f"{operand} lives on the host, but is needed on {gpu.home}; move it with: backend.asarray(array)"
        )
    return TypeError(
        f"{operand} is a {type(value).__name__}; a device takes its own arrays and numbers: "
        "make an array with backend.asarray(...)"
    )
