"""The exercises of lesson 10: where an element lies, and which sizes fit into 32 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nnlab.lessons.exercises import exercise, finished

Function = Callable[..., Any]
MOST = 2**31 - 1


@exercise("10.address", right="Two orders, two formulas: handing a matrix over in the other order is to transpose it.")
def address(value: Function) -> str | None:
    """Write address(i, j, rows, columns, by): the place of element (i, j) in memory, for by "rows" and by "columns"."""
    for by, right in (("rows", 2 * 4 + 1), ("columns", 1 * 3 + 2)):
        answer = finished(value(2, 1, 3, 4, by))
        if answer == right:
            continue
        if answer == 2 * 3 + 1 and by == "rows":
            return "Row by row, one row is `columns` elements long, not `rows`."
        if answer == 1 * 4 + 2 and by == "columns":
            return "Column by column, one column is `rows` elements long, not `columns`."
        return f'Element (2, 1) of a 3 × 4 matrix lies, by "{by}", at {right}; yours gives {answer}.'
    return None


@exercise("10.fits", right="It is the largest index that has to fit, and an index is a product of sizes.")
def fits(value: Function) -> str | None:
    """Write fits(m, k, n): can a product (m, k) × (k, n) be indexed in 32 bits, so that no matrix has more than
    2³¹ − 1 elements?"""
    finished(value(2, 3, 4))
    wrong = [
        ((2, 3, 4), True, "a small product"),
        ((50_000, 50_000, 1), False, "a left matrix of 2.5 × 10⁹ elements"),
        ((1, 50_000, 50_000), False, "a right matrix of 2.5 × 10⁹ elements"),
        ((50_000, 1, 50_000), False, "a result of 2.5 × 10⁹ elements"),
        ((65_536, 65_536, 1), False, "a left matrix of 2³² elements, which 32 bits take for 0"),
        ((MOST, 1, 1), True, "2³¹ − 1 elements, which just fit"),
        ((2**31, 1, 1), False, "2³¹ elements, one too many"),
    ]
    for sizes, right, words in wrong:
        if bool(value(*sizes)) != right:
            return f"fits{sizes} should be {right}: {words}."
    return None
