"""Writing a file whole or not at all."""

from __future__ import annotations

import os

import pytest

from nnlab.files import atomic_write


def test_a_file_appears_only_when_it_is_whole(tmp_path):
    path = tmp_path / "a.bin"
    with atomic_write(path) as file:
        file.write(b"new")
        assert not path.exists()
    assert path.read_bytes() == b"new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.bin"]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), atomic_write(path) as file:  # noqa: PT012
        file.write(b"half")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.bin"]


def test_what_a_killed_writer_left_is_swept_up_and_a_living_one_is_left_alone(tmp_path):
    dead, living = tmp_path / ".a[1].bin.999999999.part", tmp_path / f".a[1].bin.{os.getppid()}.part"
    foreign = tmp_path / ".b.bin.999999999.part"
    for part in (dead, living, foreign):
        part.write_bytes(b"half")
    with atomic_write(tmp_path / "a[1].bin") as file:
        file.write(b"whole")
    assert {entry.name for entry in tmp_path.iterdir()} == {"a[1].bin", living.name, foreign.name}


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real.bin").write_bytes(b"old")
    (tmp_path / "link.bin").symlink_to("real.bin")
    with atomic_write(tmp_path / "link.bin") as file:
        file.write(b"new")
    assert (tmp_path / "link.bin").is_symlink()
    assert (tmp_path / "real.bin").read_bytes() == b"new"


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="make it first"), atomic_write(tmp_path / "no" / "a.bin"):
        pass


def test_the_bytes_are_on_the_disk_before_the_name_changes(tmp_path, monkeypatch):
    """fsync of the file, then the new name, then fsync of the folder."""
    done = []
    replace, fsync = os.replace, os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (done.append("fsync"), fsync(handle)))
    monkeypatch.setattr(os, "replace", lambda *names: (done.append("replace"), replace(*names)))
    with atomic_write(tmp_path / "a.bin") as file:
        file.write(b"new")
    assert done == ["fsync", "replace"] + ["fsync"] * (os.name != "nt")
