"""Launching a kernel: `kernel[blocks, threads](arguments)`, with the same checks on every backend."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from nnlab.backends.base import Array, Backend
from nnlab.backends.kernels.interpreter import Size, interpret
from nnlab.backends.kernels.report import KernelReport
from nnlab.errors import KernelFault

MOST_THREADS_IN_A_BLOCK = 1024
_ROUNDING = {"f": {4: 1e-5, 8: 1e-12}}  # of the largest value, by kind and bytes of the type


class Kernel(ABC):
    """Something to launch. `kernel[blocks, threads](...)` queues it; each is a number or a tuple of up to three.

    Arguments are arrays of the backend's home, and numbers: a float becomes the backend's dtype, an integer int32
    (int64 where it needs to be). It writes into arrays and returns nothing.
    """

    def __init__(self, backend: Backend, function: Callable[..., None]) -> None:
        self.backend, self.function = backend, function
        self.name = function.__name__
        self._names = list(inspect.signature(function).parameters)

    def __getitem__(self, size: tuple[Any, Any]) -> Launcher:
        if not isinstance(size, tuple) or len(size) != 2:
            raise TypeError(f"launch with {self.name}[blocks, threads_per_block](...)")
        blocks, threads = (_size(part) for part in size)
        if int(np.prod(threads)) > MOST_THREADS_IN_A_BLOCK:
            raise ValueError(f"a block holds at most {MOST_THREADS_IN_A_BLOCK} threads, not {int(np.prod(threads))}")
        return Launcher(self, blocks, threads)

    def __call__(self, *_: object) -> None:
        raise TypeError(f"launch a kernel with {self.name}[blocks, threads_per_block](...)")

    @abstractmethod
    def launch(self, blocks: Size, threads: Size, arguments: dict[str, Any]) -> None:
        """Queue it on the arguments, whose homes and types have been checked."""

    @abstractmethod
    def expect(self, blocks: Size, threads: Size, arguments: dict[str, Any]) -> None:
        """What the kernel must do, on NumPy arrays: raises what is wrong with it, and writes what it should write."""

    def typed(self, values: tuple[Any, ...]) -> dict[str, Any]:
        """The arguments by name. Raises TypeError, MixedBackendError."""
        if len(values) != len(self._names):
            raise TypeError(f"{self.name} takes {', '.join(self._names)}; {len(values)} arguments were given")
        arguments = dict(zip(self._names, values, strict=True))
        self.backend.require_home(**{name: value for name, value in arguments.items() if _is_array(value)})
        return {n: value if _is_array(value) else self._number(n, value) for n, value in arguments.items()}

    def _number(self, name: str, value: Any) -> Any:
        if isinstance(value, np.generic):
            return value
        if isinstance(value, bool):
            return np.bool_(value)
        if isinstance(value, int):
            return np.int32(value) if -(2**31) <= value < 2**31 else np.int64(value)
        if isinstance(value, float):
            return self.backend.dtype.type(value)
        raise TypeError(f"{self.name}: {name} is a {type(value).__name__}; a kernel takes arrays and numbers")


class Launcher:
    """A kernel with its size: call it, or check it on copies."""

    def __init__(self, kernel: Kernel, blocks: Size, threads: Size) -> None:
        self.kernel, self.blocks, self.threads = kernel, blocks, threads

    def __call__(self, *values: Any) -> None:
        self.kernel.launch(self.blocks, self.threads, self.kernel.typed(values))

    def check(self, *values: Any, tolerance: float | None = None) -> None:
        """Run on copies, and compare with what must come out: the interpreted kernel, or the NumPy reference.

        tolerance: the allowed difference, as a part of the largest value; None: 1e-5 in float32, 1e-12 in float64,
        0 for integers. Raises KernelFault naming the first array and element that differ, IndexError.
        """
        kernel = self.kernel
        arguments = kernel.typed(values)
        host = {n: kernel.backend.to_host(v).copy() if _is_array(v) else v for n, v in arguments.items()}
        copies = {n: v.copy() if _is_array(v) else v for n, v in arguments.items()}
        kernel.expect(self.blocks, self.threads, host)
        kernel.launch(self.blocks, self.threads, copies)
        for name, wanted in host.items():
            if isinstance(wanted, np.ndarray):
                _compare(kernel.name, name, wanted, kernel.backend.to_host(copies[name]), tolerance)


class InterpretedKernel(Kernel):
    """A Python function, run thread by thread; `report` tells what the last launch did.

    A launch raises IndexError for an access out of range, and KernelFault for a race or a missed barrier, with the
    line and the threads.
    """

    report: KernelReport | None = None

    def launch(self, blocks: Size, threads: Size, arguments: dict[str, Any]) -> None:
        arrays = {name: value for name, value in arguments.items() if _is_array(value)}

        def action(*data: np.ndarray) -> None:
            self.expect(blocks, threads, arguments | dict(zip(arrays, data, strict=True)))

        self.backend.launch(self.name, tuple(arrays.values()), action)

    def expect(self, blocks: Size, threads: Size, arguments: dict[str, Any]) -> None:
        run = interpret(self.function, blocks, threads, arguments)
        self.report = run.report
        run.finish()


class ReferenceKernel(Kernel):
    """A CUDA C kernel off the card: its NumPy reference runs, booked as one launch."""

    def __init__(self, backend: Backend, source: str, name: str, reference: Callable[..., None]) -> None:
        super().__init__(backend, reference)
        require_named(source, name)
        self.name, self.source = name, source

    def launch(self, blocks: Size, threads: Size, arguments: dict[str, Any]) -> None:
        require_contiguous(self.name, arguments)
        arrays = {name: value for name, value in arguments.items() if _is_array(value)}

        def action(*data: np.ndarray) -> None:
            self.expect(blocks, threads, arguments | dict(zip(arrays, data, strict=True)))

        self.backend.launch(self.name, tuple(arrays.values()), action)

    def expect(self, blocks: Size, threads: Size, arguments: dict[str, Any]) -> None:
        self.function(*arguments.values())


def require_named(source: str, name: str) -> None:
    """Raise ValueError unless the CUDA C declares the kernel in a way that it can be found by its name."""
    if name not in source or 'extern "C"' not in source:
        raise ValueError(f'the CUDA C source must declare extern "C" __global__ void {name}(...)')


def require_contiguous(name: str, arguments: dict[str, Any]) -> None:
    """Raise ValueError for an array whose elements do not lie one after the other: CUDA C sees a bare pointer."""
    for argument, value in arguments.items():
        if _is_array(value) and not value.flags.c_contiguous:
            raise ValueError(f"{name}: {argument} does not lie row by row in memory; hand over {argument}.copy()")


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and not isinstance(value, np.generic)


def _size(part: Any) -> Size:
    numbers = part if isinstance(part, tuple) else (part,)
    if not 1 <= len(numbers) <= 3 or any(not isinstance(n, int | np.integer) or n < 1 for n in numbers):
        raise ValueError(f"blocks and threads are whole numbers of 1 or more, or tuples of up to three; not {part!r}")
    x, y, z = (*(int(n) for n in numbers), 1, 1)[:3]
    return x, y, z


def _compare(kernel: str, name: str, wanted: np.ndarray, got: Array, tolerance: float | None) -> None:
    if wanted.size == 0:
        return
    if tolerance is None:
        tolerance = _ROUNDING.get(wanted.dtype.kind, {}).get(wanted.dtype.itemsize, 0.0)
    room = tolerance * float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0))
    wrong = ~(np.isclose(got, wanted, rtol=0, atol=room, equal_nan=True))
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise KernelFault(
            f"kernel {kernel}: {name}[{', '.join(map(str, place))}] is {got[place]}, but must be {wanted[place]}; "
            f"{int(wrong.sum()):,} of {wrong.size:,} elements differ"
        )
