"""Linear systems and inverses that fail alike on every backend.

NumPy raises for a matrix that is exactly singular; a GPU hands back inf and NaN. Here both raise SingularMatrixError,
for every matrix whose condition is beyond the precision of its type: its inverse would be rounding noise.
"""

from __future__ import annotations

import numpy as np

from nnlab.backends import Array, Backend, backend_of
from nnlab.errors import ShapeError, SingularMatrixError


def solve(a: Array, b: Array) -> Array:
    """x with a x = b, for a (n, n) and b (n,) or (n, k). Integers are taken as float64.

    Costs the inverse too, from which the condition is told, and one copy to the host. Raises SingularMatrixError,
    ShapeError, MixedBackendError; ValueError for values that are not finite.
    """
    backend = _home_of_square("solve", a)
    backend.require_home(b=b)
    if b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        raise ShapeError(f"solve needs b with {a.shape[0]} rows for a {a.shape}, not shape {tuple(b.shape)}")
    a, b = _floating(a), _floating(b)
    columns = b.reshape(b.shape[0], -1)
    both = backend.xp.concatenate([columns, backend.xp.eye(a.shape[0], dtype=b.dtype)], axis=1)
    solved = _linalg(backend, "solve", a, both)
    _check_condition(backend, "solve", a, solved[:, columns.shape[1] :])
    return solved[:, : columns.shape[1]].reshape(b.shape)


def inv(a: Array) -> Array:
    """The inverse of a (n, n), in its type; integers give float64. One copy to the host, for the condition.

    Raises SingularMatrixError, ShapeError; ValueError for values that are not finite.
    """
    backend = _home_of_square("inv", a)
    a = _floating(a)
    inverse = _linalg(backend, "inv", a)
    _check_condition(backend, "inv", a, inverse)
    return inverse


def _home_of_square(name: str, a: Array) -> Backend:
    backend = backend_of(a)
    if a.ndim != 2 or a.shape[0] != a.shape[1] or a.shape[0] == 0:
        raise ShapeError(f"{name} needs a square matrix, not shape {tuple(a.shape)}")
    return backend


def _floating(a: Array) -> Array:
    return a if a.dtype.kind == "f" else a.astype(np.float64)


def _linalg(backend: Backend, name: str, *arrays: Array) -> Array:
    try:
        return getattr(backend.xp.linalg, name)(*arrays)
    except np.linalg.LinAlgError as error:
        raise SingularMatrixError(_singular(name, arrays[0].shape)) from error


def _check_condition(backend: Backend, name: str, a: Array, inverse: Array) -> None:
    """Raise unless the condition number in the 1-norm is below 1 / epsilon."""
    xp = backend.xp
    norms = xp.stack([xp.abs(a).sum(axis=0).max(), xp.abs(inverse).sum(axis=0).max()])
    size, inverse_size = (float(norm) for norm in backend.to_host(norms))
    if not np.isfinite(size):
        raise ValueError(f"{name} of a matrix {tuple(a.shape)} with values that are not finite")
    if not size * inverse_size < 1.0 / float(np.finfo(a.dtype).eps):
        raise SingularMatrixError(_singular(name, a.shape))


def _singular(name: str, shape: tuple[int, ...]) -> str:
    return (
        f"{name}: the matrix {tuple(shape)} is singular to working precision: some rows follow from the others. "
        "Remove duplicate or constant columns, or add a small value to the diagonal"
    )
