"""The exercises of lesson 02, spam and ham."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nnlab.lessons.exercises import exercise, finished

THRESHOLDS = np.linspace(0.01, 0.99, 99)


@exercise("02.logit", right="ln(0.9 / 0.1) = ln 9: the logit is the logarithm of the odds, nine to one.")
def logit(value: Any) -> str | None:
    """Find the logit z for which the sigmoid gives 0.9."""
    z = float(value)
    if math.isclose(z, math.log(9), abs_tol=5e-3):
        return None
    if math.isclose(z, 1 / (1 + math.exp(-0.9)), abs_tol=5e-3):
        return "That is the sigmoid of 0.9. The question runs the other way: which z does the sigmoid turn into 0.9?"
    return f"The sigmoid of {z:g} is {float(np.exp(-np.logaddexp(0, -z))):.3f}. Solve 1 / (1 + exp(-z)) = 0.9 for z."


@exercise("02.recall", right="Ham does not enter: recall is about the spam alone.")
def recall(value: Any) -> str | None:
    """Write recall(p, y, threshold): the share of the spam that has p >= threshold."""
    p = np.array([[0.9], [0.4], [0.2], [0.8], [0.3], [0.5]])
    y = np.array([[1.0], [1.0], [1.0], [0.0], [0.0], [1.0]])
    for threshold, right in ((0.5, 0.5), (0.3, 0.75), (0.95, 0.0)):
        answer = float(finished(value(p, y, threshold)))
        called = p >= threshold
        if math.isclose(answer, right, abs_tol=1e-9):
            continue
        if called.any() and math.isclose(answer, float(y[called].mean()), abs_tol=1e-9):
            return "That is the precision: the share of spam among what was called spam. Divide by all spam instead."
        if math.isclose(answer, float((called == (y == 1)).mean()), abs_tol=1e-9):
            return "That is the accuracy. Look only at the rows where y is 1."
        if threshold == 0.5 and math.isclose(answer, 0.25, abs_tol=1e-9):
            return "A mail with p equal to the threshold counts as called: use >=, not >."
        return (
            f"For p = {p.ravel()}, y = {y.ravel()} and threshold {threshold} the recall is {right:g}, not {answer:g}."
        )
    return None


@exercise(
    "02.cheapest",
    right="The dearer a false alarm, the higher the line. Choose it on rows kept aside, not on test rows.",
)
def cheapest(value: Any) -> str | None:
    """Write cheapest(p, y, alarm): of the thresholds 0.01, 0.02 ... 0.99 one with the lowest total cost, where a
    missed spam costs 1 and a false alarm costs alarm."""
    rng = np.random.default_rng(0)
    y = (rng.random((300, 1)) < 0.3).astype(float)
    p = np.exp(-np.logaddexp(0, -(2.5 * y - 1.8 + rng.normal(size=y.shape))))
    for alarm in (0.2, 1.0, 10.0):
        threshold = float(finished(value(p, y, alarm)))
        if not np.isclose(THRESHOLDS, threshold).any():
            return f"{threshold:g} is not one of the thresholds 0.01, 0.02 ... 0.99."
        least = min(_cost(p, y, t, alarm) for t in THRESHOLDS)
        cost = _cost(p, y, threshold, alarm)
        if not math.isclose(cost, least, rel_tol=1e-9):
            return (
                f"On 300 mails made for this check, with alarm = {alarm:g}, your threshold {threshold:.2f} costs "
                f"{cost:g}; another one costs {least:g}."
            )
    return None


def _cost(p: np.ndarray, y: np.ndarray, threshold: float, alarm: float) -> float:
    called = p >= threshold
    return float((~called & (y == 1)).sum() + alarm * (called & (y == 0)).sum())
