"""Guesses: told right or wrong and why, and no error in a fresh notebook."""

from __future__ import annotations

import pytest

from nnlab.errors import UnknownName
from nnlab.lessons import guess
from nnlab.lessons.guesses import keys, lookup


@pytest.mark.parametrize("placeholder", [None, ...])
def test_a_fresh_notebook_is_told_what_to_do(placeholder, capsys):
    guess("01.limit", placeholder)
    assert (
        capsys.readouterr().out == '… Your guess first: replace the dots by "a", "b" or "c", and run this cell again.\n'
    )


def test_right_and_wrong_choices_are_told_why(capsys):
    entry = lookup("01.limit")
    for letter, why in entry["why"].items():
        guess("01.limit", letter.upper())
        out = " ".join(capsys.readouterr().out.split())
        assert out.startswith("✓ Right." if letter == entry["answer"] else "✗ Not this one.")
        assert " ".join(why.split()) in out


def test_a_letter_that_is_not_offered_is_no_error(capsys):
    guess("01.limit", "z")
    assert "'z' is not one of the choices" in capsys.readouterr().out


def test_an_unknown_key_names_the_nearest():
    with pytest.raises(UnknownName, match=r"01\.limit"):
        guess("01.limmit", "a")


@pytest.mark.parametrize("key", keys())
def test_every_answer_is_one_of_its_letters_and_every_letter_has_a_reason(key):
    entry = lookup(key)
    assert set(entry) == {"answer", "why"}
    assert entry["answer"] in entry["why"]
    assert len(entry["why"]) >= 2
    assert all(len(why) > 20 for why in entry["why"].values())
