"""`fuse` on the simulated GPU: the operations are computed on the side, and one kernel is booked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from nnlab.backends.sim.core import DeviceArray, gpu_of
from nnlab.backends.sim.gpu import Gpu
from nnlab.backends.sim.pools import make_pool
from nnlab.backends.sim.timeline import Timeline
from nnlab.errors import EngineCannot

_ROOM = 2**62  # bytes; what is computed on the side lives in registers


class _Side(Gpu):
    """A GPU on the side: takes elementwise kernels, and refuses everything else by name."""

    function = ""

    def launch(self, kind: str, name: str, seconds: float, char: str = "f") -> None:
        if kind != "ufunc":
            self._refuse(name)

    def upload(self, name: str, nbytes: int, *, pinned: bool) -> None:
        self._refuse(name)

    def download(self, name: str, nbytes: int, *, pinned: bool = False, blocking: bool = True) -> None:
        self._refuse(name)

    def _refuse(self, name: str) -> NoReturn:
        raise EngineCannot(
            f"fuse cannot make one kernel of {self.function}: it uses {name}. It may hold operators and elementwise "
            "functions of backend.xp alone; do products, sums, indexing and reading of values outside of it"
        )


def run_fused(function: Callable[..., Any], values: tuple[Any, ...]) -> Any:
    """The function's results as arrays of the values' home, booked as one launch. Raises EngineCannot."""
    gpu = gpu_of(function.__name__, *values)
    capturing = gpu.graph is not None
    results = _compute(gpu, function, values, on_copies=capturing)
    several = isinstance(results, tuple)
    for result in results if several else (results,):
        if result is not None and not isinstance(result, DeviceArray):
            raise EngineCannot(f"fuse cannot make a kernel of {function.__name__}: it returns {result!r}, no array")
    arrays = [gpu.wrap(result._data) for result in (results if several else (results,)) if result is not None]
    moved = sum(value._data.nbytes for value in (*values, *arrays) if isinstance(value, DeviceArray))
    gpu.launch("ufunc", function.__name__, gpu.device.elementwise(moved), gpu_char(values))
    if gpu.graph is not None:
        for array in arrays:
            array._data.fill(0)  # nothing has run yet

        def replay() -> None:
            again = _compute(gpu, function, values, on_copies=False)
            for array, result in zip(arrays, again if several else (again,), strict=False):
                array._data[...] = result._data

        gpu.graph.actions.append(replay)
    return tuple(arrays) if several else (arrays[0] if arrays else None)


def gpu_char(values: tuple[Any, ...]) -> str:
    """The type code of the first array."""
    return next(value._data.dtype.char for value in values if isinstance(value, DeviceArray))


def _compute(gpu: Gpu, function: Callable[..., Any], values: tuple[Any, ...], *, on_copies: bool) -> Any:
    side = object.__new__(_Side)
    vars(side).update(vars(gpu))
    side.function = function.__name__
    side.limit, side.in_arrays, side.graph_pools, side.graph = _ROOM, 0, [], None
    side.pool, side.timeline = make_pool("default", side, 0), Timeline(1)
    side.stream = side.timeline.default
    handed = [
        side.wrap(value._data.copy() if on_copies else value._data) if isinstance(value, DeviceArray) else value
        for value in values
    ]
    return function(*handed)
