"""Par: how few copies, launches and waits an exercise on a device can do with."""

from __future__ import annotations

from nnlab.backends.receipt import Receipt
from nnlab.errors import UnknownName
from nnlab.lessons.text import RIGHT, TODO, WRONG, say, unfilled

# what can have a par: the receipt's own counts, and the sums of both directions
COUNTS = {
    "launches": ("launches",),
    "copies": ("h2d_copies", "d2h_copies"),
    "uploads": ("h2d_copies",),
    "downloads": ("d2h_copies",),
    "bytes_copied": ("h2d_bytes", "d2h_bytes"),
    "waits": ("waits",),
    "syncs": ("syncs",),
    "allocations": ("allocations",),
    "peak_bytes": ("peak_bytes",),
}


def par(receipt: Receipt | None = None, **pars: int) -> None:
    """Score a receipt against the par of an exercise: `par(receipt, copies=2, launches=40)`.

    pars: any of launches, copies (both directions), uploads, downloads, bytes_copied, waits, syncs, allocations,
    peak_bytes; at par or below is right. A count that this machine cannot give is shown as not available and left
    out of the verdict. While the receipt is None or `...`, the par is told.
    Raises UnknownName for a count that no receipt has, ValueError where no par is given.
    """
    if not pars:
        raise ValueError("par needs at least one count: par(receipt, launches=40)")
    for name in pars:
        if name not in COUNTS:
            raise UnknownName("count", name, COUNTS)
    if receipt is None or unfilled(receipt):
        say(TODO, "Still to do. Par:", ", ".join(f"{_words(name)} {limit:,}" for name, limit in pars.items()) + ".")
        return
    yours = {name: _count(receipt, name) for name in pars}
    for line in _table(yours, pars):
        print(line)
    over = [name for name, count in yours.items() if count is not None and count > pars[name]]
    under = [name for name, count in yours.items() if count is not None and count < pars[name]]
    if over:
        say(WRONG, f"Above par in {' and '.join(map(_words, over))}.")
    elif all(count is None for count in yours.values()):
        say(TODO, "None of these counts is available on this machine, so there is no verdict.")
    else:
        say(RIGHT, "Below par: better than ours." if under else "Par.")


def _count(receipt: Receipt, name: str) -> int | None:
    total = 0
    for field in COUNTS[name]:
        value = getattr(receipt, field)
        if value is None:
            return None
        total += value
    return total


def _table(yours: dict[str, int | None], pars: dict[str, int]) -> list[str]:
    cells = [("", "yours", "par")]
    for name, count in yours.items():
        cells.append((_words(name), "not available" if count is None else f"{count:,}", f"{pars[name]:,}"))
    wide = [max(len(row[column]) for row in cells) for column in range(3)]
    return [f"{a:<{wide[0]}}  {b:>{wide[1]}}  {c:>{wide[2]}}".rstrip() for a, b, c in cells]


def _words(name: str) -> str:
    return name.replace("_", " ")
