"""The working copy in my-course/ is filled and never overwritten; nothing a learner wrote is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from nnlab.bootstrap.clone import Clone, SetupError
from nnlab.bootstrap.course import copy_missing, restore


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    """A clone with two lessons and a picture beside them."""
    notebooks = tmp_path / "notebooks"
    (notebooks / "images").mkdir(parents=True)
    (notebooks / ".ipynb_checkpoints").mkdir()
    (notebooks / "00_start_here.ipynb").write_text("start")
    (notebooks / "03_xor.ipynb").write_text("xor")
    (notebooks / "images" / "cub.png").write_bytes(b"picture")
    (notebooks / "ruff.toml").write_text("for who writes lessons")
    (notebooks / ".ipynb_checkpoints" / "03_xor-checkpoint.ipynb").write_text("old")
    return Clone(tmp_path)


def test_the_first_copy_brings_everything_a_lesson_needs(clone: Clone) -> None:
    copied = copy_missing(clone)
    assert [path.relative_to(clone.course).as_posix() for path in copied] == [
        "00_start_here.ipynb",
        "03_xor.ipynb",
        "images/cub.png",
    ]
    assert (clone.course / "images" / "cub.png").read_bytes() == b"picture"


def test_a_second_copy_changes_nothing_and_brings_new_lessons(clone: Clone) -> None:
    copy_missing(clone)
    (clone.course / "03_xor.ipynb").write_text("my own work")
    (clone.notebooks / "03_xor.ipynb").write_text("a newer version")
    (clone.notebooks / "04_next.ipynb").write_text("new")
    assert [path.name for path in copy_missing(clone)] == ["04_next.ipynb"]
    assert (clone.course / "03_xor.ipynb").read_text() == "my own work"


@pytest.mark.parametrize("name", ["03", "3", "03_xor", "03_xor.ipynb"])
def test_fresh_restores_one_lesson_and_keeps_the_learners_version(clone: Clone, name: str) -> None:
    copy_missing(clone)
    (clone.course / "03_xor.ipynb").write_text("my own work")
    (clone.course / "00_start_here.ipynb").write_text("my notes")
    fresh, backup = restore(clone, name)
    assert fresh.read_text() == "xor"
    assert backup is not None
    assert backup.parent == clone.course / "backups"
    assert backup.read_text() == "my own work"
    assert (clone.course / "00_start_here.ipynb").read_text() == "my notes"


def test_two_backups_in_the_same_second_are_both_kept(clone: Clone) -> None:
    copy_missing(clone)
    kept = set()
    for work in ("first", "second", "third"):
        (clone.course / "03_xor.ipynb").write_text(work)
        _, backup = restore(clone, "03")
        assert backup is not None
        kept.add(backup)
    assert {path.read_text() for path in kept} == {"first", "second", "third"}


def test_an_untouched_or_absent_lesson_needs_no_backup(clone: Clone) -> None:
    assert restore(clone, "03")[1] is None
    assert restore(clone, "03")[1] is None
    assert not (clone.course / "backups").exists()


def test_an_unknown_lesson_is_refused_with_the_list(clone: Clone) -> None:
    with pytest.raises(SetupError, match="no lesson '30'; the lessons are 00_start_here, 03_xor"):
        restore(clone, "30")
    assert not clone.course.exists()
