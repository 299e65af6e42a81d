"""Lesson 10: its exercises know right answers and the usual mistakes; its table and its widget say what they should."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nnlab.lessons.recorded import recording

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "10_multiply_matrices.ipynb"


def address(i, j, rows, columns, by):
    return i * columns + j if by == "rows" else j * rows + i


def wrong_by_columns(i, j, rows, columns, by):
    return i * columns + j if by == "rows" else j * columns + i


CASES = [
    ("10.address", address, "Right."),
    ("10.address", lambda i, j, rows, columns, by: i * columns + j, "lies, by"),
    ("10.address", lambda i, j, rows, columns, by: i * rows + j, "not `rows`"),
    ("10.address", wrong_by_columns, "not `columns`"),
    ("10.fits", lambda m, k, n: max(m * k, k * n, m * n) < 2**31, "Right."),
    ("10.fits", lambda m, k, n: max(m, k, n) < 2**31, "a left matrix of 2.5"),
    ("10.fits", lambda m, k, n: m * k < 2**31, "a right matrix"),
    ("10.fits", lambda m, k, n: max(m * k, k * n) < 2**31, "a result"),
    ("10.fits", lambda m, k, n: max(m * k, k * n, m * n) < 2**31 - 1, "just fit"),
    ("10.fits", lambda m, k, n: max(m * k, k * n, m * n) <= 2**31, "one too many"),
    ("10.fits", lambda m, k, n: False, "a small product"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "answer", "word"), CASES)
def test_answers_are_told_apart(key, answer, word, judged):
    judged(key, answer, word)


@pytest.mark.parametrize("key", ["10.address", "10.fits"])
def test_an_empty_function_repeats_the_task(key, judged):
    judged(key, lambda *arguments: ..., "Still to do: Write ")


def test_the_table_of_the_lesson_is_the_recording():
    first = "".join(json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"][0]["source"])
    us = recording("products-h200")["us"]
    assert f"| `xp.sum(axis=0)` | {us['sum(axis=0)']} |" in first
    assert f"| a product with a row of ones | {us['product with a row of ones']} |" in first


@pytest.fixture(scope="module")
def ui():
    pytest.importorskip("ipywidgets")
    from nnlab.lessons.widgets import Products

    return Products()


def test_half_the_rate_is_reached_by_large_squares_and_never_with_one_size_at_64(ui):
    def percent(rows, inner, columns):
        said = ui.show(rows=rows, inner=inner, columns=columns)
        return float(said.split(": ")[-1].split(" %")[0].removeprefix("less than "))

    assert percent(256, 256, 256) < 50 <= percent(512, 512, 512) < percent(4096, 4096, 4096) <= 100
    assert percent(16384, 64, 16384) < 50
    assert percent(1, 1, 1) == 0.01
    assert len(ui.tried) >= 5
