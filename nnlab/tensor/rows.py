"""Taking rows by number, and adding to rows by number: the two halves of a look-up and its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnlab.backends import Array, Backend, backend_of, home_of
from nnlab.errors import ShapeError


def take_rows(a: Array, rows: Any) -> Array:
    """The rows of `a` with the numbers `rows`, (k, ...) of a.shape (n, ...). Negative numbers count from the end.

    rows: a list or NumPy array of integers, checked on the host and sent over in one copy; or an integer array of
    the home of `a`, whose smallest and largest number are read to check them, which waits for the device.
    Raises IndexError where a number is out of range: a GPU by itself would wrap round without a word.
    """
    backend = backend_of(a)
    return backend.xp.take(a, _checked(backend, rows, a.shape), axis=0)


def scatter_add(target: Array, rows: Any, values: Any) -> Array:
    """Add `values` to the rows of `target` with the numbers `rows`, in place; a row named twice gets both.

    values: an array (k, ...) of the home of `target` (n, ...), or one number. Returns `target`. On a GPU the order in
    which a row's values are added is not fixed, so the last bits of floats may differ from run to run.
    Raises IndexError, ShapeError, MixedBackendError, TypeError for fractions into integers.
    """
    backend = backend_of(target)
    index = _checked(backend, rows, target.shape)
    shape = (*index.shape, *target.shape[1:])
    if isinstance(values, int | float | np.generic):
        if not np.can_cast(np.min_scalar_type(values), target.dtype, "same_kind"):
            raise TypeError(f"scatter_add of {values!r} into {target.dtype} would cut it; convert the array")
        values = backend.xp.full(shape, values, dtype=target.dtype)
    backend.require_home(values=values)
    if values.shape != shape:
        raise ShapeError(
            f"scatter_add of {index.shape} row numbers into {target.shape} needs values {shape}, not {values.shape}"
        )
    if not np.can_cast(values.dtype, target.dtype, "same_kind"):
        raise TypeError(f"scatter_add of {values.dtype} values into {target.dtype} would cut them; convert one of them")
    backend.xp.add.at(target, index, values)
    return target


def _checked(backend: Backend, rows: Any, shape: tuple[int, ...]) -> Array:
    """The row numbers as an array of the backend's home. Raises IndexError, TypeError."""
    if not shape:
        raise ShapeError("a 0-d array has no rows")
    here = backend.owns(rows)
    if not here and home_of(rows) != "the host":
        backend.refuse("rows", rows)
    index = rows if here else np.asarray(rows)
    if index.size == 0 and not here:
        index = index.astype(np.int64)
    if index.dtype.kind not in "iu":
        raise TypeError(f"row numbers are integers, not {index.dtype}")
    if index.size:
        ends = backend.to_host(backend.xp.stack([index.min(), index.max()])) if here else (index.min(), index.max())
        for number in (int(ends[0]), int(ends[1])):
            if not -shape[0] <= number < shape[0]:
                raise IndexError(f"row {number} is out of range: the array has shape {shape}, rows 0 to {shape[0] - 1}")
    return index if here else backend.asarray(index)
