"""Several elementwise operations as one kernel."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from nnlab.backends import Backend, backend_of
from nnlab.errors import EngineCannot


def fuse(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arrays and numbers that runs as one launch.

    `function` may use operators and elementwise functions of `backend.xp` alone: no products, no sums, no indexing, no
    reading of values. On a real GPU CuPy compiles it at its first call, on the simulated one it is booked as one
    kernel, and on the host it is called as it is. Raises EngineCannot where it does something else, MixedBackendError.
    """
    compiled: dict[str, Callable[..., Any]] = {}

    @functools.wraps(function)
    def fused(*values: Any) -> Any:
        backend = _home(function.__name__, values)
        if backend.is_host:
            return function(*values)
        if backend.name == "sim":
            from nnlab.backends.sim.fusing import run_fused

            return run_fused(function, values)
        if backend.home not in compiled:
            name = function.__name__ if function.__name__.isidentifier() else "fused"
            compiled[backend.home] = backend.xp.fuse(kernel_name=name)(function)
        try:
            return compiled[backend.home](*_typed(values))
        except (AttributeError, NotImplementedError, TypeError) as error:
            raise EngineCannot(
                f"fuse cannot make one kernel of {function.__name__}: {error}. It may hold operators and elementwise "
                "functions of backend.xp alone; do products, sums, indexing and reading of values outside of it"
            ) from error

    return fused


def _typed(values: tuple[Any, ...]) -> list[Any]:
    """Python floats in the type of the first floating array, so that they widen nothing inside the kernel."""
    types = (value.dtype.type for value in values if hasattr(value, "dtype") and value.dtype.kind == "f")
    real = next(types, float)
    return [real(value) if isinstance(value, float) else value for value in values]


def _home(name: str, values: tuple[Any, ...]) -> Backend:
    arrays = {f"argument {number}": value for number, value in enumerate(values, 1) if hasattr(value, "shape")}
    if not arrays:
        raise TypeError(f"{name} is fused, and needs at least one array")
    backend = backend_of(next(iter(arrays.values())))
    backend.require_home(**arrays)
    return backend
