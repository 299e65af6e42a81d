"""The exercise of lesson 00 knows the right answer and the usual mistakes."""

from __future__ import annotations

import pytest

CASES = [
    (lambda picture: 1 - picture, "Right."),
    (lambda picture: picture, "still the light"),
    (lambda picture: -picture, "becomes -1"),
    (lambda picture: picture.mean(), "One number a pixel"),
    (lambda picture: 0 * picture, "yours has 0."),
    (lambda picture: ..., "Still to do: Write to_ink"),
]


@pytest.mark.parametrize(("answer", "word"), CASES)
def test_answers_are_told_apart(answer, word, judged):
    judged("00.ink", answer, word)
