"""Exercise checks: the task, a complaint or praise, never an exception."""

from __future__ import annotations

import pytest

from nnlab.errors import UnknownName
from nnlab.lessons import check
from nnlab.lessons.exercises import EXERCISES, exercise, finished


@pytest.fixture(autouse=True)
def double():
    @exercise("99.double", right="Twice as much.")
    def judge(value):
        """Write double(n): twice
        the number n."""
        answer = finished(value(3))
        return None if answer == 6 else f"double(3) should be 6, yours gives {answer}."

    yield
    del EXERCISES["99.double"]


def said(capsys) -> str:
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("value", [None, ..., lambda n: None, lambda n: ...])
def test_an_empty_answer_repeats_the_task(value, capsys):
    check("99.double", value)
    assert said(capsys) == "… Still to do: Write double(n): twice the number n."


def test_a_right_answer_is_praised(capsys):
    check("99.double", lambda n: 2 * n)
    assert said(capsys) == "✓ Right. Twice as much."


def test_a_wrong_answer_is_told_what_is_wrong(capsys):
    check("99.double", lambda n: n**2)
    assert said(capsys) == "✗ double(3) should be 6, yours gives 9."


def test_an_answer_that_fails_is_reported_and_not_raised(capsys):
    check("99.double", lambda n: n / 0)
    assert said(capsys).startswith("✗ Your answer stopped with ZeroDivisionError: division by zero.")


def test_an_unknown_key_is_an_error():
    with pytest.raises(UnknownName, match=r"99\.double"):
        check("99.doubel", 1)


def test_an_exercise_without_a_task_is_refused():
    with pytest.raises(ValueError, match="docstring"):
        exercise("99.mute", right="")(lambda value: None)
