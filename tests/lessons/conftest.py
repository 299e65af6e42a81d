"""What the tests of all lessons share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nnlab.lessons import check


@pytest.fixture
def judged(capsys: pytest.CaptureFixture[str]) -> Callable[[str, object, str], None]:
    """`judged(key, answer, word)`: the exercise's judge says `word`, under the mark that goes with it.

    Word "Right." goes with a tick, words that begin with "Still to do" with dots, all others with a cross.
    """

    def judged(key: str, answer: object, word: str) -> None:
        check(key, answer)
        said = " ".join(capsys.readouterr().out.split())
        assert word in said
        assert said.startswith("✓") == (word == "Right.")
        assert said.startswith("…") == word.startswith("Still to do")

    return judged
