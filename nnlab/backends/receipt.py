"""The receipt: what a run cost on a device. Data only; the backends fill it in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Receipt:
    """Counts of what a block of code asked of a device; None means *not available* here, never zero.

    launches: kernels started. h2d_*/d2h_*: copies host to device and back, and their bytes. syncs: explicit
    waits; waits: all times the host had to wait for the device. allocations: blocks asked of the system;
    pool_hits: blocks the pool had ready. peak_bytes: most memory in use at once.
    """

    launches: int | None = 0
    h2d_copies: int | None = 0
    h2d_bytes: int | None = 0
    d2h_copies: int | None = 0
    d2h_bytes: int | None = 0
    syncs: int | None = 0
    waits: int | None = 0
    allocations: int | None = 0
    pool_hits: int | None = 0
    peak_bytes: int | None = 0
    seconds: float = 0.0
