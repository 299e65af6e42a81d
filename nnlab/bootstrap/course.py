"""The learner's working copy of the lessons in my-course/: filled, never overwritten."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

from nnlab.bootstrap.clone import Clone, SetupError

_LEFT_OUT = {".ipynb_checkpoints", "__pycache__", "ruff.toml"}


def copy_missing(clone: Clone) -> list[Path]:
    """Copy what my-course/ does not have yet from notebooks/; returns the new files."""
    copied = []
    for source in sorted(clone.notebooks.rglob("*")):
        inner = source.relative_to(clone.notebooks)
        target = clone.course / inner
        if source.is_dir() or _LEFT_OUT & set(inner.parts) or target.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        copied.append(target)
    clone.course.mkdir(exist_ok=True)
    return copied


def restore(clone: Clone, lesson: str) -> tuple[Path, Path | None]:
    """Put a fresh copy of a lesson ("03", "3" or "03_xor") into my-course/.

    The learner's version moves to my-course/backups/. Returns the fresh file and the backup, None if there was
    nothing to keep. Raises SetupError for an unknown lesson.
    """
    source = _find(clone, lesson)
    target = clone.course / source.name
    backup = None
    if target.exists() and target.read_bytes() != source.read_bytes():
        backup = _free_name(clone.course / "backups", target)
        backup.parent.mkdir(parents=True, exist_ok=True)
        target.rename(backup)
    target.parent.mkdir(exist_ok=True)
    shutil.copyfile(source, target)
    return target, backup


def _find(clone: Clone, lesson: str) -> Path:
    lessons = sorted(clone.notebooks.glob("*.ipynb"))
    wanted = lesson.removesuffix(".ipynb")
    for path in lessons:
        number = re.match(r"[0-9]+", path.stem)
        if path.stem == wanted or (number and wanted.isdecimal() and int(number.group()) == int(wanted)):
            return path
    raise SetupError(f"there is no lesson {lesson!r}; the lessons are {', '.join(path.stem for path in lessons)}")


def _free_name(folder: Path, path: Path) -> Path:
    stem = f"{path.stem}-{time.strftime('%Y-%m-%d-%H%M%S')}"
    candidates = [folder / f"{stem}{path.suffix}", *(folder / f"{stem}-{n}{path.suffix}" for n in range(2, 100))]
    return next(candidate for candidate in candidates if not candidate.exists())
