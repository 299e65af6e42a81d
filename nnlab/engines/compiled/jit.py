"""How the compiled parts are compiled: numba.njit with this project's options, typed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Array = Any  # of float32, where nothing else is said
Function = TypeVar("Function", bound=Callable[..., Any])

# A product may be fused with a sum; NaN stays NaN, and the steps of a range reduction stay apart.
OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True, "fastmath": {"contract", "nsz", "arcp"}}
SUMS = OPTIONS | {"fastmath": {"contract", "nsz", "arcp", "reassoc"}}  # the compiler may split a sum into lanes


def compiled(**options: Any) -> Callable[[Function], Function]:
    """numba.njit with a type that checkers understand."""

    def decorate(function: Function) -> Function:
        result: Function = numba.njit(**options)(function)
        return result

    return decorate
