"""Kernels on the card: Python functions through cupyx.jit, CUDA C through NVRTC."""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from nnlab.backends.base import Backend
from nnlab.backends.kernels.interpreter import Size, interpret
from nnlab.backends.kernels.launching import Kernel, require_contiguous, require_named
from nnlab.backends.kernels.namespace import FUNCTIONS, INDICES, MATHS, TYPES, cuda
from nnlab.errors import EngineCannot


class JitKernel(Kernel):
    """A Python function over thread indices, compiled at its first launch for the types of its arguments."""

    def __init__(self, backend: Backend, function: Callable[..., None]) -> None:
        super().__init__(backend, function)
        self._compiled: Any = None
        self._known: set[tuple[Any, ...]] = set()

    def launch(self, blocks: Size, threads: Size, arguments: dict[str, Any]) -> None:
        values = tuple(arguments.values())
        key = tuple((str(value.dtype), getattr(value, "ndim", 0)) for value in values)
        if key in self._known:
            self._compiled(blocks, threads, values)
            return
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that cupyx.jit is experimental, and does not know our decorator
                if self._compiled is None:
                    self._compiled = compiled(self.backend.xp, self.function)
                self._compiled(blocks, threads, values)
        except _COMPILE_ERRORS as error:
            raise EngineCannot(
                f"kernel {self.name} cannot be compiled for the card: {error}. It may use what nnlab.backends.kernels."
                "cuda names, elements of its arguments, numbers, if, while and for ... in range"
            ) from error
        self._known.add(key)

    def expect(self, blocks: Size, threads: Size, arguments: dict[str, Any]) -> None:
        interpret(self.function, blocks, threads, arguments).finish()


class CudaKernel(Kernel):
    """A kernel in CUDA C, compiled at its first launch; `check` holds it against its NumPy reference."""

    def __init__(self, backend: Backend, source: str, name: str, reference: Callable[..., None]) -> None:
        super().__init__(backend, reference)
        require_named(source, name)
        self.name, self.source = name, source
        self._kernel = backend.xp.RawKernel(source, name)

    def launch(self, blocks: Size, threads: Size, arguments: dict[str, Any]) -> None:
        require_contiguous(self.name, arguments)
        self._kernel(blocks, threads, tuple(arguments.values()))

    def expect(self, blocks: Size, threads: Size, arguments: dict[str, Any]) -> None:
        self.function(*arguments.values())


_COMPILE_ERRORS = (AssertionError, AttributeError, IndexError, NameError, NotImplementedError, TypeError, ValueError)


def compiled(cupy: Any, function: Callable[..., None]) -> Any:
    """The function as a cupyx.jit kernel, our `cuda` replaced by the card's names wherever the function sees it."""
    from cupyx import jit

    card = card_names(cupy)

    def swapped(value: Any) -> Any:
        return card if value is cuda else value

    assert isinstance(function, types.FunctionType)
    known = function.__globals__
    used = [name for name in (*function.__code__.co_names, "__builtins__") if name in known]
    seen = {name: swapped(known[name]) for name in used}
    cells = tuple(types.CellType(swapped(cell.cell_contents)) for cell in function.__closure__ or ())
    return jit.rawkernel()(types.FunctionType(function.__code__, seen, function.__name__, None, cells or None))


def card_names(cupy: Any) -> types.SimpleNamespace:
    """What `cuda` means on the card: cupyx.jit's barriers and atomics, CuPy's elementwise functions.

    Indices are handed out as int, where cupyx.jit gives unsigned ones: `i - 1` is to be -1 in the first thread, and
    `size //= 2` is to keep its type.
    """
    from cupyx import jit
    from cupyx.jit import _cuda_types, _internal_types

    def whole(code: str) -> Any:
        return _internal_types.Data(f"static_cast<int>({code})", _cuda_types.int32)

    def directions(code: str) -> Any:
        """A function of a launch's directions: a number for 1, a tuple for 2 and 3."""
        places = [whole(code.format(axis)) for axis in "xyz"]

        def of(count: int) -> Any:
            if count == 1:
                return places[0]
            packed = ", ".join(place.code for place in places[:count])
            kind = _cuda_types.Tuple([_cuda_types.int32] * count)
            return _internal_types.Data(f"STD::make_{'pair' if count == 2 else 'tuple'}({packed})", kind)

        return of

    own: dict[str, Any] = {name: getattr(jit, name) for name in FUNCTIONS}
    own |= {n: types.SimpleNamespace(**{axis: whole(f"{n}.{axis}") for axis in "xyz"}) for n in INDICES}
    own["grid"] = directions("threadIdx.{0} + blockIdx.{0} * blockDim.{0}")
    own["gridsize"] = directions("blockDim.{0} * gridDim.{0}")
    maths = {name: getattr(cupy, name) for name in MATHS}
    return types.SimpleNamespace(**own, **maths, **{name: getattr(np, name) for name in TYPES})
