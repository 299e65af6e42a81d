"""`SimArray`: an array of a simulated GPU, with CuPy's behaviour."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from nnlab.backends.sim import indexing, products, reductions, shaping
from nnlab.backends.sim.core import DeviceArray, refusal
from nnlab.backends.sim.gpu import Gpu
from nnlab.backends.sim.reading import Reading
from nnlab.backends.sim.ufuncs import UFUNCS


class SimArray(Reading, DeviceArray):
    """An array of a simulated GPU. Made by `backend.asarray` and the functions of `backend.xp`.

    Operators and methods are NumPy's. A result stays on the device, a 0-d array at least; `float()`, `bool()`,
    `item()` and `repr` copy to the host and wait. Mixing with NumPy arrays raises MixedBackendError, and NumPy's own
    functions refuse it.
    """

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __init__(self) -> None:
        raise TypeError("make device arrays with backend.asarray(...) or the functions of backend.xp")

    shape = property(lambda self: self._data.shape)
    dtype = property(lambda self: self._data.dtype)
    ndim = property(lambda self: self._data.ndim)
    size = property(lambda self: self._data.size)
    nbytes = property(lambda self: self._data.nbytes)
    itemsize = property(lambda self: self._data.itemsize)
    strides = property(lambda self: self._data.strides)
    flags = property(lambda self: self._data.flags)

    @property
    def T(self) -> Any:
        """The transpose, a view."""
        return self._gpu.wrap(self._data.T, self._lease)

    def __len__(self) -> int:
        return len(self._data)

    def __iter__(self) -> Iterator[Any]:
        if self._data.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self._data)))

    def __getitem__(self, key: Any) -> Any:
        return indexing.getitem(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        indexing.setitem(self, key, value)

    def __matmul__(self, other: Any) -> Any:
        return products.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return products.matmul(other, self)

    def __pow__(self, other: Any) -> Any:
        if type(other) is int and other == 2:  # as NumPy, which squares by a product
            return UFUNCS["square"](self)
        return UFUNCS["power"](self, other)

    def reshape(self, *shape: Any) -> Any:
        return shaping.reshape(self, shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: Any) -> Any:
        return shaping.transpose(self, axes[0] if len(axes) == 1 else (axes or None))

    def swapaxes(self, first: int, second: int) -> Any:
        return shaping.swapaxes(self, first, second)

    def ravel(self) -> Any:
        return shaping.ravel(self)

    def view(self, dtype: Any) -> Any:
        """The same memory read as another type."""
        return self._gpu.wrap(self._data.view(dtype), self._lease)

    def flatten(self) -> Any:
        return shaping.copy(self).ravel()

    def squeeze(self, axis: Any = None) -> Any:
        return shaping.squeeze(self, axis)

    def copy(self, order: str = "C") -> Any:
        return shaping.copy(self, order)

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        return shaping.astype(self, dtype, copy)

    def fill(self, value: float) -> None:
        self[...] = value

    def take(self, indices: Any, axis: int | None = None) -> Any:
        return indexing.take(self, indices, axis)

    def nonzero(self) -> Any:
        return indexing.nonzero(self)

    def dot(self, other: Any) -> Any:
        return products.dot(self, other)

    def clip(self, low: Any = None, high: Any = None, out: Any = None) -> Any:
        return shaping.clip(self, low, high, out)

    def __copy__(self) -> Any:
        return shaping.copy(self)

    def __deepcopy__(self, memo: object) -> Any:
        return shaping.copy(self)

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"an array of {self._gpu.home} is not pickled; pickle backend.to_host(array)")

    def __array__(self, *args: object, **options: object) -> NoReturn:
        raise TypeError(
            f"an array of {self._gpu.home} does not become a NumPy array by itself; use backend.to_host(array)"
        )

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> NoReturn:
        raise TypeError(
            f"numpy.{function.__name__} works on the host, and this array lives on {self._gpu.home}; "
            f"{_instead(self._gpu, function.__name__)}take the array over with backend.to_host(array)"
        )

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        if name == "get":
            raise AttributeError("a device array goes to the host with backend.to_host(array), not with .get()")
        message = f"an array of {self._gpu.home} has no attribute {name!r}"
        if hasattr(np.ndarray, name):
            cure = f"{_instead(self._gpu, name)}take the array over with backend.to_host(array)"
            message += f", though a NumPy array has; {cure}"
        raise AttributeError(message)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        for position, value in enumerate(inputs, 1):
            if isinstance(value, np.ndarray):
                raise refusal(self._gpu, ufunc.__name__, position, value)
        scalar = any(isinstance(value, np.generic) for value in inputs)  # np.float32(2) * x comes this way
        if method == "__call__" and scalar and ufunc.__name__ in UFUNCS and not options:
            return UFUNCS[ufunc.__name__](*inputs)
        return self.__array_function__(ufunc, (), (), {})


def _instead(gpu: Gpu, name: str) -> str:
    """The beginning of a cure: the function of `xp` with that name, where there is one."""
    from nnlab.backends.sim.namespace import Namespace

    xp = Namespace(gpu)
    for room, path in ((xp, name), (xp.linalg, f"linalg.{name}")):
        if hasattr(room, name):
            return f"use backend.xp.{path}(...), or "
    return ""


def _binary(name: str) -> tuple[Any, Any, Any]:
    function = UFUNCS[name]

    def forward(self: Any, other: Any) -> Any:
        return function(self, other)

    def backward(self: Any, other: Any) -> Any:
        return function(other, self)

    def inplace(self: Any, other: Any) -> Any:
        return function(self, other, out=self)

    return forward, backward, inplace


def _unary(name: str) -> Any:
    function = UFUNCS[name]

    def forward(self: Any) -> Any:
        return function(self)

    return forward


def _method(name: str) -> Any:
    function = reductions.REDUCTIONS[name]

    def method(self: Any, *args: Any, **options: Any) -> Any:
        return function(self, *args, **options)

    method.__name__, method.__doc__ = name, function.__doc__
    return method


_BINARY = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "floordiv": "floor_divide"}
_BINARY |= {"mod": "remainder", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"}
_BINARY |= {"lshift": "left_shift", "rshift": "right_shift", "pow": "power"}
_COMPARE = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
_UNARY = {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}

for _short, _name in _BINARY.items():
    _forward, _backward, _inplace = _binary(_name)
    if _short != "pow":
        setattr(SimArray, f"__{_short}__", _forward)
    setattr(SimArray, f"__r{_short}__", _backward)
    setattr(SimArray, f"__i{_short}__", _inplace)
for _short, _name in _COMPARE.items():
    setattr(SimArray, f"__{_short}__", _binary(_name)[0])
for _short, _name in _UNARY.items():
    setattr(SimArray, f"__{_short}__", _unary(_name))
for _name in ("sum", "prod", "max", "min", "all", "any", "argmax", "argmin", "mean", "var", "std", "cumsum"):
    setattr(SimArray, _name, _method(_name))

Gpu.array_type = SimArray
