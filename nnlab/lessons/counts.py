"""Counts that a lesson states, held against a receipt: exact where they are exact, on every machine."""

from __future__ import annotations

from nnlab.backends.receipt import COUNTS, Receipt
from nnlab.errors import UnknownName

ROOM = 2  # on a card, cuBLAS and CUB decide how many kernels an operation takes: from half as many to twice


def check_counts(receipt: Receipt, **counts: int) -> None:
    """Assert that the receipt has these counts: `check_counts(receipt, launches=33, d2h_copies=4)`.

    On the simulated GPU all are exact. On a card, launches may be up to ROOM times as many or as few, and a count
    that is not available is left out; the others are exact there too. Without CUPTI (then launches are not
    available) only copies through a backend's doors are seen, so there may be fewer.
    Raises AssertionError naming the counts that differ, UnknownName for a count that no receipt has.
    """
    for name in counts:
        if name not in COUNTS:
            raise UnknownName("count", name, COUNTS)
    wrong = []
    for name, expected in counts.items():
        found = getattr(receipt, name)
        room = ROOM if name == "launches" and not receipt.modelled else 1
        least = 0 if receipt.launches is None else expected / room
        if found is not None and not least <= found <= expected * room:
            wrong.append(f"{name.replace('_', ' ')}: {found:,}, not {expected:,}")
    assert not wrong, f"the receipt of {receipt.home} has " + "; ".join(wrong)
