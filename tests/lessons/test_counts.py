"""Counts stated by a lesson: exact on the simulated GPU, with room for a library's own kernels on a card."""

from __future__ import annotations

import pytest

from nnlab.backends import Receipt
from nnlab.errors import UnknownName
from nnlab.lessons import check_counts

SIM = Receipt(launches=23, h2d_copies=2, waits=1, modelled=True, home="simulated GPU 0")
CARD = Receipt(launches=25, h2d_copies=2, waits=None, home="GPU 0")


def test_counts_that_hold_pass():
    check_counts(SIM, launches=23, h2d_copies=2, waits=1)


@pytest.mark.parametrize("wrong", [{"launches": 22}, {"launches": 24}, {"h2d_copies": 3}, {"waits": 0}])
def test_a_count_that_differs_is_named(wrong):
    (name,) = wrong
    with pytest.raises(AssertionError, match=name.replace("_", " ")):
        check_counts(SIM, **wrong)


def test_a_card_may_launch_helpers_and_not_know_its_waits():
    for launches in (13, 23, 50):
        check_counts(CARD, launches=launches, h2d_copies=2, waits=1)
    for wrong in ({"launches": 12}, {"launches": 51}, {"h2d_copies": 1}):
        with pytest.raises(AssertionError, match="GPU 0 has"):
            check_counts(CARD, **wrong)


def test_without_cupti_hidden_copies_are_not_seen():
    blind = Receipt(launches=None, d2h_copies=1, waits=None, home="GPU 0")
    check_counts(blind, launches=23, d2h_copies=5)
    with pytest.raises(AssertionError, match="d2h copies: 1, not 0"):
        check_counts(blind, d2h_copies=0)


def test_an_unknown_count_is_named():
    with pytest.raises(UnknownName, match="launches"):
        check_counts(SIM, launchs=1)
