"""Writing a file so that a crash leaves the old one or the new one, never half of one."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import psutil


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """`with atomic_write(path) as file:` gives a binary file that becomes `path` only when the block ends well.

    The bytes go to a hidden file in the same folder, are forced onto the disk (fsync), and then take the place of
    `path` in one step. After an error `path` is what it was, and the hidden file is gone.
    """
    check_target(path)
    target = Path(os.path.realpath(path))
    _sweep(target)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except BaseException:
        with suppress(FileNotFoundError):
            part.unlink()
        raise
    _sync_folder(target.parent)


def check_target(path: str | os.PathLike[str]) -> None:
    """Raise OSError, naming the cure, where no file of that name can be written."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{os.fspath(path) or 'an empty name'}: is a folder; name a file in it")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target.parent}: there is no such folder; make it first")
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(f"{target.parent}: you may not write in this folder; choose another")


def _sweep(target: Path) -> None:
    """Remove what writers of this file left behind when they were killed."""
    for part in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
        pid = part.name.split(".")[-2]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            with suppress(OSError):
                part.unlink()


def _sync_folder(folder: Path) -> None:
    """The new name is safe only when the folder is on the disk too; Windows cannot open folders and needs no help."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
