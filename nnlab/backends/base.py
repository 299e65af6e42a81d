"""What every backend can do: the protocol behind `nnlab.backend(...)`."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np

from nnlab.backends.receipt import Receipt
from nnlab.backends.timing import Timing
from nnlab.errors import EngineCannot, MixedBackendError, UnknownName

Array = Any  # numpy.ndarray, cupy.ndarray or SimArray: whatever the backend's home holds
DTYPES = ("float32", "float64")


class Memory(NamedTuple):
    """Bytes of memory: in use by arrays, held (in use or kept for reuse), the limit, the highest use so far."""

    used: int
    held: int
    limit: int
    peak: int


class Graph(ABC):
    """Launches recorded by `capture`, to be run again on the same buffers."""

    @abstractmethod
    def replay(self) -> None:
        """Queue all recorded launches at the cost of one. Raises CaptureError while the block still records."""


class Backend(ABC):
    """A home for arrays, and the functions that work on them there.

    name: "numpy", "sim" or "cupy". dtype: the floating type of everything this backend makes.
    xp: the array module of this home; `xp.tanh(a)` works on every backend.
    """

    name: str
    xp: Any

    def __init__(self, *, dtype: str = "float32") -> None:
        name = getattr(dtype, "__name__", str(dtype))  # np.float32 is taken as "float32"
        if name not in DTYPES:
            raise UnknownName("dtype", name, DTYPES)
        self.dtype = np.dtype(name)

    @classmethod
    @abstractmethod
    def holding(cls, array: Array) -> Backend:
        """The backend of this kind that holds `array`, with the array's floating type."""

    @property
    @abstractmethod
    def home(self) -> str:
        """Where the arrays live, in words: "the host", "simulated GPU 0 (h200)", ..."""

    @property
    def is_host(self) -> bool:
        """True where reading a value costs nothing, because the arrays are NumPy's own."""
        return False

    @abstractmethod
    def owns(self, array: object) -> bool:
        """Does the array live in this backend's home?"""

    @abstractmethod
    def asarray(self, host: Any, *, dtype: str | None = None) -> Array:
        """The only door in: a host array, list or number becomes an array of this home.

        Floats become `self.dtype` (or `dtype`); integers and booleans stay what they are unless `dtype` is given.
        An array that lives here already is returned as it is where its type fits.
        Raises MixedBackendError for an array of another device.
        """

    @abstractmethod
    def to_host(self, array: Array, *, out: np.ndarray | None = None, blocking: bool = True) -> np.ndarray:
        """The only door out: the array as a NumPy array, in `out` where given.

        blocking=False does not wait for the copy: `out` must be `pinned` memory, and holds the values after the next
        synchronize. Raises MixedBackendError for an array of another home.
        """

    @abstractmethod
    def matmul(
        self, a: Array, b: Array, *, out: Array | None = None, transpose_a: bool = False, transpose_b: bool = False
    ) -> Array:
        """The matrix product of two 2-D arrays, either of them transposed on the way; into `out` where given.

        Raises ShapeError where the inner sizes differ.
        """

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until everything asked of the device is done."""

    @abstractmethod
    def measure(self) -> AbstractContextManager[Receipt]:
        """`with b.measure() as receipt:` fills the receipt with what the block cost on the device."""

    @abstractmethod
    def memory(self) -> Memory:
        """Bytes (used, held, limit, peak) of this home."""

    @abstractmethod
    def release_memory(self) -> None:
        """Collect garbage, then give memory that is held but not used back to the system."""

    @abstractmethod
    def astype(self, dtype: str) -> Self:
        """The same home with another floating type."""

    def allocate(self, nbytes: int) -> Any:
        """A bare block of device memory. `block.free()` gives it back; a second time raises DoubleFree."""
        raise EngineCannot(f"{self.home} lends no blocks of memory; use nnlab.backend('sim') or nnlab.gpu()")

    def pinned(self, host: Any) -> np.ndarray:
        """A copy of a host array in page-locked memory, which a device copies from and to several times faster."""
        return np.array(host)

    def stream(self) -> Any:
        """A new stream: a queue of its own for work on the device.

        `with stream:` makes it the one that takes the work. stream.synchronize() waits for it; stream.record()
        returns an event; stream.wait_event(event) makes later work in this stream wait for it. Raises EngineCannot
        on a home without streams.
        """
        raise EngineCannot(f"{self.home} has no streams; use nnlab.backend('sim') or nnlab.gpu()")

    def capture(self) -> AbstractContextManager[Graph]:
        """`with b.capture() as graph:` records the block's launches without running them; graph.replay() runs them.

        Raises CaptureError for an operation that cannot be recorded, EngineCannot on a home without graphs.
        """
        raise EngineCannot(f"{self.home} has no launches to capture; use nnlab.backend('sim') or nnlab.gpu()")

    def kernel(self, function: Callable[..., None]) -> Any:
        """`@b.kernel` makes a kernel of a Python function over thread indices: see nnlab.backends.kernels.

        Off the card it is interpreted thread by thread, which finds races and accesses out of range.
        """
        from nnlab.backends.kernels import InterpretedKernel

        return InterpretedKernel(self, function)

    def raw_kernel(self, source: str, name: str, *, reference: Callable[..., None]) -> Any:
        """The kernel `name` in CUDA C, with the NumPy function that writes what it must write.

        Off the card the reference is what runs.
        """
        from nnlab.backends.kernels import ReferenceKernel

        return ReferenceKernel(self, source, name, reference)

    def launch(
        self, name: str, arrays: tuple[Array, ...], action: Callable[..., object], *, seconds: float = 0.0
    ) -> None:
        """Queue a kernel of one's own: `action` gets the NumPy views of `arrays` and writes its results into them."""
        raise EngineCannot(f"{self.home} runs compiled kernels alone; use backend.kernel or backend.raw_kernel")

    def clock(self) -> float:
        """Seconds on the clock that `time` reads: the host's, or the modelled one of a simulated device."""
        return time.perf_counter()

    def time(
        self,
        function: Callable[[], object],
        *,
        warmup: int = 2,
        repeats: int = 5,
        clock: Callable[[], float] | None = None,
    ) -> Timing:
        """Seconds that `function()` takes, device work included, on `clock` (None: this backend's own).

        The clock is read only after a synchronize, before and after each run; the warm-up runs are not in the result.
        Raises ValueError for fewer than 0 warm-ups or 1 repeat.
        """
        if warmup < 0 or repeats < 1:
            raise ValueError(f"time needs warmup >= 0 and repeats >= 1, not warmup={warmup}, repeats={repeats}")
        for _ in range(warmup):
            function()
        return Timing(tuple(self._timed_runs(function, repeats, clock or self.clock)), warmup=warmup)

    def _timed_runs(self, function: Callable[[], object], repeats: int, clock: Callable[[], float]) -> Iterator[float]:
        for _ in range(repeats):
            self.synchronize()
            start = clock()
            function()
            self.synchronize()
            yield clock() - start

    def require_home(self, **arrays: object) -> None:
        """Raise unless all of these are arrays (TypeError) and live here (MixedBackendError); both name the array."""
        for name, array in arrays.items():
            if not self.owns(array):
                self.refuse(name, array)

    def refuse(self, name: str, array: object) -> NoReturn:
        """Raise MixedBackendError for `array` (TypeError where it is no array), with the call that cures it."""
        from nnlab.backends import home_of

        theirs = home_of(array)
        if theirs == "the host" and not isinstance(array, np.ndarray):
            kind = type(array).__name__
            raise TypeError(f"{name} must be an array, not {kind}; make one with: {name} = backend.asarray({name})")
        if theirs == "the host":
            cure = f"{name} = backend.asarray({name})"
        elif self.is_host:
            cure = f"{name} = its_backend.to_host({name})"
        else:
            cure = f"{name} = backend.asarray(its_backend.to_host({name}))"
        raise MixedBackendError(f"{name} lives on {theirs}, but is needed on {self.home}; move it with: {cure}")

    def __repr__(self) -> str:
        return f"<{self.name} backend: {self.dtype} on {self.home}>"


def check_bytes(count: object) -> None:
    """Raise ValueError unless it is a number of bytes: whole, and not below 0."""
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 0:
        raise ValueError(f"memory is counted in whole bytes, as in 2**30, not {count!r}")


def float_dtype(array: Array) -> str:
    """The backend dtype that fits an array: "float64" where it is that, else "float32"."""
    return "float64" if array.dtype == np.float64 else "float32"
