"""Standardisation: mean 0 and deviation 1, by the statistics of the rows it was fitted on."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from nnlab.errors import NotFitted, ShapeError


class StandardScaler:
    """(x - mean) / scale, column by column, for host arrays of shape (n,) or (n, d).

    Fit it on the training rows only, then transform training and test rows with it. mean, scale: float64 numbers for
    (n,), arrays (d,) for (n, d); scale is the population deviation (divide by n), and 1 where a column is constant,
    so that a feature that never varies in training stays in its own units instead of becoming huge.
    """

    def __init__(self) -> None:
        self._mean: np.ndarray | None = None
        self._scale: np.ndarray | None = None

    def fit(self, x: Any) -> Self:
        """Learn mean and scale from x. Raises ShapeError for other shapes or no rows, ValueError for NaN."""
        values = np.asarray(x, np.float64)
        if values.ndim not in (1, 2) or len(values) == 0:
            raise ShapeError(f"StandardScaler takes (n,) or (n, d) with at least one row, not {values.shape}")
        if not np.isfinite(values).all():
            raise ValueError("x holds NaN or infinity; remove or replace such rows before fitting the scaler")
        deviation = values.std(axis=0)
        constant = (values.max(axis=0) == values.min(axis=0)) | (deviation == 0)  # rounding spoils one or the other
        self._mean = values.mean(axis=0)
        self._scale = np.where(constant, 1.0, deviation)
        return self

    @property
    def mean(self) -> np.ndarray:
        """The mean of each column. Raises NotFitted before `fit`."""
        return self._fitted()[0]

    @property
    def scale(self) -> np.ndarray:
        """What each column is divided by. Raises NotFitted before `fit`."""
        return self._fitted()[1]

    def transform(self, x: Any) -> np.ndarray:
        """x in units of the fitted deviation, float64. Raises NotFitted, ShapeError."""
        mean, scale = self._fitted()
        result: np.ndarray = (self._checked(x) - mean) / scale
        return result

    def inverse_transform(self, x: Any) -> np.ndarray:
        """Back to the original units, float64. Raises NotFitted, ShapeError."""
        mean, scale = self._fitted()
        result: np.ndarray = self._checked(x) * scale + mean
        return result

    def _fitted(self) -> tuple[np.ndarray, np.ndarray]:
        if self._mean is None or self._scale is None:
            raise NotFitted("this StandardScaler has no statistics yet: call fit(x_train) first")
        return self._mean, self._scale

    def _checked(self, x: Any) -> np.ndarray:
        values = np.asarray(x, np.float64)
        columns = self._fitted()[0].shape
        if values.ndim != 1 + len(columns) or values.shape[1:] != columns:
            wanted = "(n,)" if not columns else f"(n, {columns[0]})"
            raise ShapeError(f"this StandardScaler was fitted on {wanted}; it cannot transform shape {values.shape}")
        return values
