"""Einstein summation, with every index checked before anything is launched."""

from __future__ import annotations

from nnlab.backends import Array, backend_of
from nnlab.errors import ShapeError


def einsum(spec: str, *arrays: Array) -> Array:
    """The sum over products that `spec` names, such as "ik,kj->ij" for a matrix product.

    One lower- or upper-case letter names each axis; letters missing after "->" are summed over. Without "->" the
    result has the letters that occur once, in alphabetical order. A letter has one size everywhere: unlike NumPy,
    an axis of size 1 is not stretched. Returns an array of the home of `arrays`, a 0-d one for a full sum.
    Raises ShapeError pointing at the letter, MixedBackendError.
    """
    given = spec.replace(" ", "")
    inputs, arrow, output = given.partition("->")
    terms = inputs.split(",")
    _check_letters(given, terms, output, bool(arrow))
    if len(terms) != len(arrays):
        raise ShapeError(f"einsum {given!r} names {len(terms)} arrays, but {len(arrays)} were given")
    backend = backend_of(arrays[0])
    backend.require_home(**{f"operand {number}": array for number, array in enumerate(arrays, 1)})
    _check_sizes(given, terms, [tuple(array.shape) for array in arrays])
    result = backend.xp.einsum(given, *arrays)
    return result if hasattr(result, "shape") and result.shape else backend.xp.asarray(result)


def _check_letters(spec: str, terms: list[str], output: str, explicit: bool) -> None:
    for character in spec.replace("->", ""):
        if character != "," and not (character.isascii() and character.isalpha()):
            raise ShapeError(f"einsum {spec!r}: {character!r} names no axis; each axis is one letter a-z or A-Z")
    if not explicit:
        return
    for letter in output:
        if output.count(letter) > 1:
            raise ShapeError(_pointed(spec, letter, f"index {letter!r} stands twice in the result"))
        if not any(letter in term for term in terms):
            raise ShapeError(_pointed(spec, letter, f"index {letter!r} of the result is in no operand"))


def _check_sizes(spec: str, terms: list[str], shapes: list[tuple[int, ...]]) -> None:
    seen: dict[str, tuple[int, int]] = {}  # letter -> (size, operand it was first seen in)
    for operand, (term, shape) in enumerate(zip(terms, shapes, strict=True), 1):
        if len(term) != len(shape):
            raise ShapeError(
                f"einsum {spec!r}: operand {operand} has shape {shape}, {len(shape)} axes, "
                f"but {term!r} names {len(term)}"
            )
        for letter, size in zip(term, shape, strict=True):
            first, where = seen.setdefault(letter, (size, operand))
            if first != size:
                reason = f"index {letter!r} has size {first} in operand {where} and {size} in operand {operand}"
                if 1 in (first, size):
                    reason += "; an axis of size 1 is not stretched"
                known = ", ".join(str(each) for each in shapes)
                raise ShapeError(_pointed(spec, letter, f"{reason} (shapes {known})"))


def _pointed(spec: str, letter: str, reason: str) -> str:
    """The reason, with the letter pointed at wherever it stands in the spec."""
    marks = "".join("^" if character == letter else " " for character in spec)
    return f"einsum: {reason}\n    {spec}\n    {marks.rstrip()}"
