"""Elementwise functions: one kernel each, with NumPy's values and types."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from nnlab.backends.sim.core import SCALARS, DeviceArray, refusal
from nnlab.backends.sim.gpu import Gpu, quiet, quietly

NAMES = (
    "add",
    "subtract",
    "multiply",
    "divide",
    "true_divide",
    "floor_divide",
    "remainder",
    "mod",
    "power",
    "float_power",
    "negative",
    "positive",
    "absolute",
    "abs",
    "fabs",
    "sign",
    "sqrt",
    "cbrt",
    "square",
    "reciprocal",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "logaddexp",
    "sin",
    "cos",
    "tan",
    "arcsin",
    "arccos",
    "arctan",
    "arctan2",
    "sinh",
    "cosh",
    "tanh",
    "arcsinh",
    "arccosh",
    "arctanh",
    "hypot",
    "degrees",
    "radians",
    "deg2rad",
    "rad2deg",
    "floor",
    "ceil",
    "trunc",
    "rint",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
    "logical_not",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "invert",
    "left_shift",
    "right_shift",
    "isfinite",
    "isinf",
    "isnan",
    "signbit",
    "copysign",
    "heaviside",
)


class Ufunc:
    """A NumPy ufunc on device arrays: `f(x, y, out=None, where=True, dtype=None)`, one launch."""

    __slots__ = ("name", "nin", "numpy")

    def __init__(self, name: str) -> None:
        self.numpy: np.ufunc = getattr(np, name)
        self.name = self.numpy.__name__
        self.nin = self.numpy.nin

    def __call__(self, *args: Any, out: Any = None, where: Any = True, dtype: Any = None) -> Any:
        if len(args) > self.nin and out is None:
            *args, out = args  # type: ignore[assignment]
        gpu: Gpu | None = None
        data: list[Any] = []
        moved = foreign = 0
        for arg in args:
            if isinstance(arg, DeviceArray):
                if gpu is None:
                    gpu = arg._gpu
                elif arg._gpu is not gpu:
                    foreign = len(data) + 1
                moved += arg._data.nbytes
                data.append(arg._data)
            else:
                if not isinstance(arg, SCALARS):
                    foreign = len(data) + 1
                data.append(arg)
        if gpu is None:
            gpu = self._home(out, where)
        if foreign:
            raise refusal(gpu, self.name, foreign, args[foreign - 1])
        if len(data) != self.nin:
            raise TypeError(f"{self.name} takes {self.nin} arrays, not {len(data)}")
        if out is None and where is True:
            ufunc = self.numpy
            result = quietly.run(ufunc, *data) if dtype is None else quietly.run(ufunc, *data, dtype=dtype)
            if type(result) is not np.ndarray:
                result = np.asarray(result)
            seconds = gpu.device.elementwise(moved + result.nbytes)
            if gpu.graph is None:
                return gpu.result(result, "ufunc", self.name, seconds)
            redo = _again(ufunc, data, {} if dtype is None else {"dtype": dtype})
            return gpu.result(result, "ufunc", self.name, seconds, redo)
        return self._into(gpu, data, moved, out, where, dtype)

    def _into(self, gpu: Gpu, data: list[Any], moved: int, out: Any, where: Any, dtype: Any) -> Any:
        """The rarer calls: into `out`, or for the elements of `where` alone."""
        options: dict[str, Any] = {} if dtype is None else {"dtype": dtype}
        if where is not True:
            if not isinstance(where, bool) and not (isinstance(where, DeviceArray) and where._gpu is gpu):
                raise refusal(gpu, f"{self.name}(where=...)", 1, where)
            options["where"] = where._data if isinstance(where, DeviceArray) else where
        if isinstance(out, tuple):
            (out,) = out
        action = _again(self.numpy, data, options)
        if out is None:
            result = self._empty(data, options["where"], dtype)
            action(result)
            return gpu.result(result, "ufunc", self.name, gpu.device.elementwise(moved + result.nbytes), action)
        if not (isinstance(out, DeviceArray) and out._gpu is gpu):
            raise refusal(gpu, f"{self.name}(out=...)", 1, out)
        if gpu.graph is None:
            action(out._data)
        else:
            gpu.graph.actions.append(lambda: action(out._data))
        gpu.launch("ufunc", self.name, gpu.device.elementwise(moved + out._data.nbytes), out._data.dtype.char)
        return out

    def at(self, a: Any, indices: Any, values: Any) -> None:
        """`a[indices] = f(a[indices], values)` in place, element by element: an index named twice counts twice."""
        gpu = a._gpu
        for position, value in enumerate((a, indices, values), 1):
            if not (isinstance(value, DeviceArray) and value._gpu is gpu):
                raise refusal(gpu, f"{self.name}.at", position, value)
        into, index, given = a._data, indices._data, values._data

        def run() -> None:
            with quiet():
                self.numpy.at(into, index, given)

        if gpu.graph is None:
            run()
        else:
            gpu.graph.actions.append(run)
        gpu.launch("indexing", f"{self.name}.at", gpu.device.elementwise(3 * given.nbytes), into.dtype.char)

    def _empty(self, data: list[Any], where: Any, dtype: Any) -> np.ndarray:
        """An array for the result; what `where` leaves out stays unset."""
        shape = np.broadcast_shapes(*(np.shape(value) for value in data), np.shape(where))
        if dtype is None:
            kinds = [type(value) if isinstance(value, int | float | complex) else value.dtype for value in data]
            dtype = self.numpy.resolve_dtypes((*kinds, None))[-1]
        return np.empty(shape, dtype)

    def _home(self, out: Any, where: Any) -> Gpu:
        for value in (out, where):
            if isinstance(value, DeviceArray):
                return value._gpu
        raise TypeError(f"xp.{self.name} needs a device array; make one with backend.asarray(...)")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_") or name in self.__slots__:
            raise AttributeError(name)
        raise AttributeError(
            f"{self.name} of the simulated GPU has no .{name}(...): call it, or use its .at(...); sum, prod, max, min, "
            "all, any and cumsum are functions of backend.xp"
        )

    def __repr__(self) -> str:
        return f"<{self.name} on a simulated GPU>"


def _again(ufunc: np.ufunc, data: list[Any], options: dict[str, Any]) -> Any:
    def run(out: np.ndarray) -> None:
        quietly.run(ufunc, *data, out=out, **options)

    return run


UFUNCS: dict[str, Ufunc] = {name: Ufunc(name) for name in NAMES}
