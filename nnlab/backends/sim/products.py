"""Matrix products: `@`, `dot` and `einsum` as CuPy has them, and the backend's own `matmul`, which can be captured."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnlab.backends.sim.core import DeviceArray, gpu_of, refusal, unwrap
from nnlab.backends.sim.gpu import Gpu, quiet, quietly
from nnlab.backends.sim.reductions import total
from nnlab.backends.sim.ufuncs import UFUNCS

INSTEAD = "use backend.matmul(a, b), which has its own cuBLAS handle and workspace"


def matmul(a: Any, b: Any, out: Any = None) -> Any:
    """`a @ b`. Arrays of one or two dimensions make one product, as do stacks of matrices."""
    return _product("matmul", np.matmul, a, b, out)


def dot(a: Any, b: Any, out: Any = None) -> Any:
    """`dot(a, b)`; with a number or a 0-d array it multiplies."""
    if np.ndim(getattr(a, "_data", a)) == 0 or np.ndim(getattr(b, "_data", b)) == 0:
        return UFUNCS["multiply"](a, b, out=out)
    return _product("dot", np.dot, a, b, out)


def einsum(subscripts: str, *operands: Any) -> Any:
    """NumPy's `einsum` on device arrays, booked as one product for each pair of operands."""
    gpu = gpu_of("einsum", *operands)
    _capturable(gpu, "einsum")
    data = [unwrap(gpu, "einsum", operand, position) for position, operand in enumerate(operands, 1)]
    with quiet():
        result = np.asarray(np.einsum(subscripts, *data, optimize=len(data) > 2)).copy()
    moved = result.nbytes + sum(array.nbytes for array in data)
    for _ in range(len(data) - 2):
        gpu.launch("product", "einsum", gpu.device.elementwise(moved), result.dtype.char)
    return gpu.result(result, "product" if len(data) > 1 else "ufunc", "einsum", gpu.device.elementwise(moved))


def backend_matmul(gpu: Gpu, a: np.ndarray, b: np.ndarray, out: Any) -> Any:
    """The product of two matrices through the backend's own handle; recorded while capturing."""

    def run(into: np.ndarray) -> None:
        quietly.run(np.matmul, a, b, out=into)

    seconds = gpu.device.product(a.shape[0], a.shape[1], b.shape[1], a.dtype.itemsize)
    if out is None:
        return gpu.result(quietly.run(np.matmul, a, b), "matmul", "matmul", seconds, run)
    if gpu.graph is None:
        run(out._data)
    else:
        gpu.graph.actions.append(lambda: run(out._data))
    gpu.launch("matmul", "matmul", seconds, out._data.dtype.char)
    return out


def _product(name: str, call: Any, a: Any, b: Any, out: Any) -> Any:
    gpu = gpu_of(name, a, b)
    left, right = (_matrix(gpu, name, position, value) for position, value in ((1, a), (2, b)))
    _capturable(gpu, "@" if name == "matmul" else name)
    if out is not None and not (isinstance(out, DeviceArray) and out._gpu is gpu):
        raise refusal(gpu, f"{name}(out=...)", 1, out)
    with quiet():
        result = np.asarray(call(left, right))
    if result.size == 1 and left.ndim <= 2 and right.ndim <= 2:  # CuPy multiplies and sums instead
        product = UFUNCS["multiply"](gpu.wrap(left.ravel(), a._lease), gpu.wrap(right.ravel(), b._lease))
        single = total(product)
        result = single._data.reshape(result.shape)
        if out is None:
            return gpu.wrap(result, single._lease)
        out._data[...] = result
        return out
    for value in (left, right):
        if not (value.flags.c_contiguous or value.flags.f_contiguous):
            gpu.launch("ufunc", "copy", gpu.device.elementwise(2 * value.nbytes), value.dtype.char)
    inner = left.shape[-1]
    rows = left.size // max(inner, 1)
    seconds = gpu.device.product(rows, inner, max(result.size // max(rows, 1), 1), result.dtype.itemsize)
    if out is None:
        return gpu.result(result, "product", name, seconds)
    out._data[...] = result
    gpu.launch("product", name, seconds, result.dtype.char)
    return out


def _matrix(gpu: Gpu, name: str, position: int, value: Any) -> np.ndarray:
    data = unwrap(gpu, name, value, position)
    if not isinstance(value, DeviceArray):
        raise TypeError(f"{name} multiplies arrays; operand {position} is the number {value!r}: use * instead")
    array: np.ndarray = data
    return array


def _capturable(gpu: Gpu, name: str) -> None:
    if gpu.graph is not None:
        gpu.refuse_capture(name, INSTEAD)
