"""The exercises of lesson 01 know right answers and the usual mistakes."""

from __future__ import annotations

import numpy as np
import pytest

SOLVE = np.linalg.solve


def gram(A):
    return A.T @ A / len(A)


CASES = [
    ("01.mae", lambda p, y: np.abs(p - y).mean(), "Right."),
    ("01.mae", lambda p, y: (p - y).mean(), "cancel"),
    ("01.mae", lambda p, y: np.abs(p - y).sum(), "divide by n"),
    ("01.mae", lambda p, y: ((p - y) ** 2).mean(), "mean of the squares"),
    ("01.mae", lambda p, y: np.sqrt(((p - y) ** 2).mean()), "root"),
    ("01.mae", lambda p, y: np.abs(p - y), "shape (3, 1)"),
    ("01.mae", lambda p, y: 7, "should be 1.0000, yours gives 7.0000"),
    ("01.limit", lambda A: 2 / np.linalg.eigvalsh(gram(A)).max(), "Right."),
    ("01.limit", lambda A: 1 / np.linalg.eigvalsh(gram(A)).max(), "Halve"),
    ("01.limit", lambda A: 2 / np.linalg.eigvalsh(A.T @ A).max(), "Divide A.T @ A"),
    ("01.limit", lambda A: 2 * np.linalg.eigvalsh(gram(A)).max(), "divided by"),
    ("01.limit", lambda A: 2 / np.linalg.eigvalsh(gram(A)).min(), "largest eigenvalue"),
    ("01.limit", lambda A: 1.0, "yours gives 1.0000"),
    ("01.ridge", lambda A, y, c: SOLVE(gram(A) + c * np.eye(3), A.T @ y / len(A)), "Right."),
    ("01.ridge", lambda A, y, c: SOLVE(gram(A), A.T @ y / len(A)), "no effect"),
    ("01.ridge", lambda A, y, c: SOLVE(A.T @ A + c * np.eye(3), A.T @ y), "is a mean"),
    ("01.ridge", lambda A, y, c: SOLVE(gram(A) + 2 * c * np.eye(3), A.T @ y / len(A)), "slope of the loss is not 0"),
    ("01.ridge", lambda A, y, c: np.zeros(3), "have (3,)"),
]


@pytest.mark.parametrize(("key", "answer", "word"), CASES)
def test_answers_are_told_apart(key, answer, word, judged):
    judged(key, answer, word)


@pytest.mark.parametrize("key", ["01.mae", "01.limit", "01.ridge"])
def test_an_empty_function_repeats_the_task(key, judged):
    judged(key, lambda *arguments: ..., "Still to do: Write ")
