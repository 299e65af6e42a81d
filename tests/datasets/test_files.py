"""A data file is found whole, or the error says what was expected and how to restore it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nnlab.datasets import files
from nnlab.errors import DataFileError


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone whose data files a test may damage."""
    shutil.copytree(files.data_folder(), tmp_path / "data")
    monkeypatch.setattr(files, "CLONE", tmp_path / "data")
    monkeypatch.setattr(files, "INSTALLED", tmp_path / "nnlab" / "data")
    return tmp_path


@pytest.mark.parametrize("name", sorted(files.SHA256))
def test_every_listed_file_is_intact(name: str) -> None:
    assert files.data_path(name).is_file()


def test_every_file_of_the_first_level_is_listed() -> None:
    kinds = {".csv", ".png"}
    assert {p.name for p in files.data_folder().iterdir() if p.suffix in kinds} == set(files.SHA256)


def test_a_missing_file_says_where_it_was_expected_and_how_to_restore_it(clone: Path) -> None:
    (clone / "data" / "email.csv").unlink()
    with pytest.raises(DataFileError, match=r"'email\.csv' is missing.*git checkout -- data/email\.csv") as caught:
        files.data_path("email.csv")
    assert str(clone / "data" / "email.csv") in str(caught.value)


def test_one_altered_byte_is_noticed(clone: Path) -> None:
    path = clone / "data" / "real_estate.csv"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataFileError, match=r"altered: expected sha256 3c14989e54f9.*git checkout"):
        files.data_path("real_estate.csv")


def test_the_installed_files_come_first_and_their_cure_is_to_install_again(clone: Path) -> None:
    installed = clone / "nnlab" / "data"
    shutil.copytree(clone / "data", installed)
    assert files.data_path("simba_474.png") == installed / "simba_474.png"
    (installed / "simba_474.png").unlink()
    with pytest.raises(DataFileError, match="Install nnlab again from its clone"):
        files.data_path("simba_474.png")
