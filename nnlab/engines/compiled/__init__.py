"""Code that Numba (the extra `fast`) compiles for the tiled engine; without Numba it is left alone."""

from __future__ import annotations

import importlib.util


def have_numba() -> bool:
    """Whether Numba is installed; nothing is imported to find out."""
    return importlib.util.find_spec("numba") is not None
