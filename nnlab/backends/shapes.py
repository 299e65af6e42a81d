"""Shape checks that run before any work is started, so that a mistake costs nothing."""

from __future__ import annotations

from nnlab.errors import ShapeError

Shape = tuple[int, ...]


def check_product(a: Shape, b: Shape, transpose_a: bool, transpose_b: bool, out: Shape | None) -> Shape:
    """The shape of the matrix product of `a` and `b`. Raises ShapeError naming the sizes that differ."""
    if len(a) != 2 or len(b) != 2:
        raise ShapeError(f"matmul multiplies two matrices; these have shapes {a} and {b}")
    rows, inner_a = a[::-1] if transpose_a else a
    inner_b, columns = b[::-1] if transpose_b else b
    if inner_a != inner_b:
        turned = "".join(f", {name} transposed" for name, t in (("a", transpose_a), ("b", transpose_b)) if t)
        raise ShapeError(f"matmul of {a} and {b}{turned}: inner sizes {inner_a} and {inner_b} differ")
    if out is not None and out != (rows, columns):
        raise ShapeError(f"matmul gives {(rows, columns)}, but out has shape {out}")
    return rows, columns
