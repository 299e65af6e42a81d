"""Par: a receipt scored on its counts."""

from __future__ import annotations

import pytest

from nnlab.backends.receipt import Receipt
from nnlab.errors import UnknownName
from nnlab.lessons import par

RECEIPT = Receipt(launches=40, h2d_copies=1, h2d_bytes=800, d2h_copies=2, d2h_bytes=16, waits=2)


def said(capsys) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_at_par(capsys):
    par(RECEIPT, copies=3, launches=40)
    assert said(capsys) == ["          yours  par", "copies        3    3", "launches     40   40", "✓ Par."]


def test_below_par_is_better_than_ours(capsys):
    par(RECEIPT, launches=52)
    assert said(capsys)[-1] == "✓ Below par: better than ours."


def test_above_par_names_the_counts(capsys):
    par(RECEIPT, copies=2, waits=1, launches=99)
    assert said(capsys)[-1] == "✗ Above par in copies and waits."


def test_bytes_and_directions(capsys):
    par(RECEIPT, bytes_copied=816, uploads=1, downloads=2)
    assert said(capsys)[-1] == "✓ Par."


def test_a_count_that_is_not_available_is_said_and_not_judged(capsys):
    par(Receipt(launches=None, h2d_copies=1, d2h_copies=1), launches=1, copies=2)
    lines = said(capsys)
    assert "launches  not available" in lines[1]
    assert lines[-1] == "✓ Par."
    par(Receipt(launches=None), launches=1)
    assert "no verdict" in said(capsys)[-1]


@pytest.mark.parametrize("placeholder", [None, ...])
def test_a_fresh_notebook_is_told_the_par(placeholder, capsys):
    par(placeholder, copies=2, launches=1400)
    assert said(capsys) == ["… Still to do. Par: copies 2, launches 1,400."]


def test_unknown_counts_and_no_counts_are_refused():
    with pytest.raises(UnknownName, match="launches"):
        par(RECEIPT, lanches=3)
    with pytest.raises(ValueError, match="at least one"):
        par(RECEIPT)
