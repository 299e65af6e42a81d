"""What the interpreter saw while it ran a kernel."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class KernelReport:
    """Counts of one interpreted launch.

    reads, writes, atomics: of the arrays it was given, by all threads together. shared_reads, shared_writes: of shared
    memory. most_reads, most_writes: by the busiest thread, of the arrays. barriers: passed by each thread.
    races: each in words; empty where the threads keep out of each other's way.
    """

    name: str
    blocks: int
    threads_per_block: int
    reads: int = 0
    writes: int = 0
    atomics: int = 0
    shared_reads: int = 0
    shared_writes: int = 0
    most_reads: int = 0
    most_writes: int = 0
    barriers: int = 0
    races: list[str] = field(default_factory=list)

    @property
    def threads(self) -> int:
        return self.blocks * self.threads_per_block

    def __repr__(self) -> str:
        rows = [
            ("reads", f"{self.reads:,}, most by one thread {self.most_reads}"),
            ("writes", f"{self.writes:,}, most by one thread {self.most_writes}"),
            ("atomic adds", f"{self.atomics:,}"),
            ("shared reads", f"{self.shared_reads:,}"),
            ("shared writes", f"{self.shared_writes:,}"),
            ("barriers", f"{self.barriers:,}"),
            ("races", f"{len(self.races):,}"),
        ]
        head = f"kernel {self.name}: {self.blocks:,} blocks of {self.threads_per_block:,} threads"
        return "\n".join([head, *(f"  {name:<13} {value}" for name, value in rows), *self.races])
