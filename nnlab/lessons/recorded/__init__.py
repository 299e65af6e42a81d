"""Recorded runs: what needs a GPU is measured on one, kept with how it was made, and shown under that label."""

from __future__ import annotations

import json
from typing import Any

from nnlab.datasets import data_path


def recording(name: str) -> dict[str, Any]:
    """The recording data/recordings/NAME.json. Raises DataFileError where there is none.

    Every recording has "made": card, host, driver, versions, date and command; see `label`.
    """
    read: dict[str, Any] = json.loads(data_path(f"recordings/{name}.json").read_text(encoding="utf-8"))
    return read


def label(record: dict[str, Any]) -> str:
    """One line that says where a recording comes from, to stand under whatever shows it."""
    made = record["made"]
    return f"recorded on {made['card']}, {made['date']}: {made['command']}"
