"""Which line of the learner's code asked for something: the innermost frame outside the libraries."""

from __future__ import annotations

import linecache
import sys
from pathlib import Path

from nnlab.backends.receipt import Line

_LIBRARIES = ("numpy", "cupy", "cupyx", "cupy_backends")
_NNLAB = str(Path(__file__).resolve().parents[1])
_inside: dict[str, bool] = {}  # by file name


def learner_line(depth: int = 1) -> tuple[str, int] | None:
    """(file, number) of the nearest caller outside nnlab, NumPy and CuPy; None where there is none."""
    frame = sys._getframe(depth)
    while frame is not None:
        file = frame.f_code.co_filename
        inside = _inside.get(file)
        if inside is None:
            inside = _inside[file] = _is_library(file)
        if not inside:
            return file, frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return None


def line_of(place: tuple[str, int], launches: int, copies: int, waits: int, seconds: float) -> Line:
    """The receipt's line for a place in the code, with its text where the source can be found."""
    file, number = place
    return Line(file, number, linecache.getline(file, number).strip(), launches, copies, waits, seconds)


def _is_library(filename: str) -> bool:
    path = Path(filename)
    if filename.startswith(_NNLAB):
        return True
    parts = path.parts
    return "site-packages" in parts and parts[parts.index("site-packages") + 1] in _LIBRARIES
