"""The exercises of lesson 01: absolute error, the other rate limit, ridge regression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nnlab.lessons.exercises import exercise, finished

Function = Callable[..., Any]


@exercise("01.mae", right="Absolute errors do not let one strange house outweigh twenty ordinary ones.")
def mae(value: Function) -> str | None:
    """Write mae(p, y), the mean of the absolute errors, one number."""
    p, y = np.array([[1.0], [5.0], [9.0]]), np.array([[3.0], [4.0], [9.0]])
    answer = np.asarray(finished(value(p, y)), dtype=float)
    if answer.size != 1:
        return f"One number is wanted; yours has the shape {answer.shape}."
    hints = {
        -1 / 3: "Errors of both signs cancel: take their absolute values first.",
        3.0: "That is the sum: divide by n.",
        5 / 3: "That is the mean of the squares.",
        np.sqrt(5 / 3): "That is the root of the mean of the squares.",
    }
    return _compare(float(answer.item()), 1.0, "For the errors −2, 1 and 0 it should be", hints)


@exercise(
    "01.limit",
    right="Twice ours, 0.740 for our houses: half the loss, half the slope, so twice the rate is the same step.",
)
def limit(value: Function) -> str | None:
    """Write largest_rate_half(A), the limit of the rate where the loss is half the mean squared error."""
    rng = np.random.default_rng(5)
    A = np.column_stack([np.ones(40), rng.normal(size=(40, 2)) * [1.0, 2.0]])
    least, _, top = (float(eigenvalue) for eigenvalue in np.linalg.eigvalsh(A.T @ A / 40))
    answer = float(finished(value(A)))
    hints = {
        1 / top: "That is the limit for the whole mean squared error. Halve the curvature.",
        2 / (top * 40): "Divide A.T @ A by the number of rows before you take its eigenvalues.",
        2 * top: "The limit is 2 divided by the largest curvature.",
        2 / least: "The steepest direction sets the limit: take the largest eigenvalue.",
    }
    return _compare(answer, 2 / top, "For a matrix A of our own it should be", hints)


@exercise("01.ridge", right="The weights shrink towards 0, the more so the larger the penalty.")
def ridge(value: Function) -> str | None:
    """Write ridge(A, y, penalty), the weights (d, 1) that minimise the mean squared error plus penalty × Σw²."""
    rng = np.random.default_rng(6)
    A = np.column_stack([np.ones(30), rng.normal(size=(30, 2))])
    y = rng.normal(size=(30, 1)) + 3
    gram, moment, eye = A.T @ A / 30, A.T @ y / 30, np.eye(3)
    answer = np.asarray(finished(value(A, y, 0.5)), dtype=float)
    if answer.shape != (3, 1):
        return f"The weights for A (30, 3) and y (30, 1) have the shape (3, 1); yours have {answer.shape}."
    if np.allclose(answer, np.linalg.solve(gram + 0.5 * eye, moment)):
        return None
    if np.allclose(answer, np.linalg.solve(gram, moment)):
        return "These are the least-squares weights: the penalty has no effect yet."
    if np.allclose(answer, np.linalg.solve(gram * 30 + 0.5 * eye, moment * 30)):
        return "Here the penalty is added to the sum of squares. Our loss is a mean: divide A.T @ A and A.T @ y by n."
    slope = 2 * (gram @ answer - moment) + 2 * 0.5 * answer
    steepest = np.abs(slope).max()
    return f"At your weights the slope of the loss is not 0 but {steepest:.3g}. Set the gradient to 0 and solve for w."


def _compare(answer: float, right: float, sentence: str, hints: dict[float, str]) -> str | None:
    if np.isclose(answer, right, rtol=1e-6):
        return None
    for number, hint in hints.items():
        if np.isclose(answer, number, rtol=1e-6):
            return hint
    return f"{sentence} {right:.4f}, yours gives {answer:.4f}."
