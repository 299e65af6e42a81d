"""Finding the files in `data/`, whole and unaltered."""

from __future__ import annotations

import hashlib
from pathlib import Path

from nnlab.errors import DataFileError

_PACKAGE = Path(__file__).resolve().parent.parent
INSTALLED = _PACKAGE / "data"  # where the wheel puts the files
CLONE = _PACKAGE.parent / "data"  # where they lie in a clone

# What each file must hold, to the byte: the lessons' numbers depend on it.
SHA256 = {
    "camera_512.png": "93c7b3e1e37533e585db07b1d9496657a43444cae70ca2590cbcdef7bfcb43a6",
    "chelsea_96.png": "a95edbe4a2cfe3a07d88143bca5460cb85ee189f6807edddccd1ca38017a26ef",
    "email.csv": "19a65461fda31064d7f8fd4b2f5061940555dee2f759f7376f8c819c254fb72f",
    "real_estate.csv": "3c14989e54f99ccf072fff3c89f790427641999771c2e584d37be80c32c4f872",
    "simba_474.png": "486772755755c29f8cfab4e8ea8f2f35def2c14c360ea229fd919731e9edc968",
}


def data_folder() -> Path:
    """The folder with the data files: the installed package's if it has one, else the clone's."""
    return INSTALLED if INSTALLED.is_dir() else CLONE


def data_path(name: str) -> Path:
    """Path of the data file `name`, such as "email.csv" or "recordings/h200.json".

    Files listed in SHA256 are compared with their digest first.
    Raises DataFileError when the file is missing or altered.
    """
    path = data_folder() / name
    if not path.is_file():
        raise DataFileError(f"data file {name!r} is missing: expected it at {path}. {_cure(name)}")
    expected = SHA256.get(name)
    if expected is not None:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != expected:
            raise DataFileError(
                f"data file {name!r} was altered: expected sha256 {expected[:12]}..., found {found[:12]}... in {path}. "
                f"{_cure(name)}"
            )
    return path


def _cure(name: str) -> str:
    if data_folder() == CLONE:
        return f"Restore it with `git checkout -- data/{name}` in the folder of the clone."
    return "Install nnlab again from its clone: `pip install --force-reinstall --no-deps .`"
