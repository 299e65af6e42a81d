"""Words that the teaching aids print: wrapped, and the same on every machine."""

from __future__ import annotations

import textwrap

RIGHT, WRONG, TODO = "✓", "✗", "…"


def unfilled(value: object) -> bool:
    """Is it still the placeholder of a fresh notebook, None or `...`?"""
    return value is None or value is ...


def say(mark: str, *sentences: str) -> None:
    """Print a mark and what follows it, wrapped at 100 characters."""
    text = " ".join(s.strip() for s in sentences if s.strip())
    print(textwrap.fill(f"{mark} {text}", width=100, subsequent_indent="  "))
