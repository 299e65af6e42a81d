"""The exercises of lesson 12, pictures as numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nnlab.lessons.exercises import exercise, finished


@exercise("12.pixel", right="It undoes the formula for the centres, and every pixel owns its whole width.")
def pixel(value: Any) -> str | None:
    """Write pixel_at(x, n): the number, from 0 to n - 1, of the pixel in which the coordinate x lies."""
    for n in (1, 4, 6, 270):
        for i in range(n):
            for share in (0.1, 0.5, 0.9):
                x = -1 + 2 * (i + share) / n
                answer = finished(value(x, n))
                if answer == i:
                    continue
                if answer == round((x + 1) / 2 * (n - 1)):
                    return (
                        f"These are end points: pixel 0 would be half as wide as it is. Of {n} pixels, x = {x:.4g} "
                        f"lies in number {i}; yours is {answer}."
                    )
                return f"Of {n} pixels, x = {x:.4g} lies in number {i}; yours is {answer}."
        if (last := value(1.0, n)) != n - 1:
            return f"The right edge, x = 1, belongs to the last of {n} pixels, number {n - 1}; yours is {last}."
    return None


@exercise("12.over", right="Invisible colours stay invisible.")
def over(value: Any) -> str | None:
    """Write over(colour, alpha, background): the colours seen, rounded to bytes, for bytes (n, 3), (n, 1) and (3,)."""
    rng = np.random.default_rng(12)
    colour = rng.integers(0, 256, (40, 3)).astype(np.uint8)
    alpha = rng.integers(0, 256, (40, 1)).astype(np.uint8)
    colour[:3] = (255, 0, 0), (0, 0, 255), (101, 56, 20)
    alpha[:3, 0] = 0, 128, 255
    for background in (np.array([255, 255, 255], np.uint8), np.array([10, 120, 230], np.uint8)):
        share = alpha / 255.0
        exact = share * colour + (1 - share) * background
        answer = np.asarray(finished(value(colour.copy(), alpha.copy(), background.copy())))
        if answer.shape != colour.shape:
            return f"Colours (40, 3) in, colours (40, 3) out; yours has the shape {answer.shape}."
        if np.array_equal(answer, colour):
            return "The colours came back unchanged, invisible red included. Alpha says how much of them is seen."
        off = np.abs(answer.astype(float) - exact)
        if off.max() <= 0.5 + 1e-9:
            if answer.dtype != np.uint8:
                return f"The values are right; they should be bytes, uint8, and yours are {answer.dtype}."
            continue
        if np.array_equal(answer.astype(float), np.floor(exact + 1e-9)):
            return "astype(np.uint8) cuts the fraction off: 127.9 becomes 127. Round first."
        row = int(off.max(axis=1).argmax())
        seen, wanted = (tuple(values[row].round().astype(int).tolist()) for values in (answer, exact))
        return (
            f"{tuple(colour[row].tolist())} with alpha {alpha[row, 0]} over {tuple(background.tolist())} is {wanted}; "
            f"yours is {seen}. Do the products still fit into the bytes?"
        )
    return None


@exercise(
    "12.psnr", right="The range is said and not guessed, so that the same picture has the same PSNR however it is kept."
)
def psnr_between(value: Any) -> str | None:
    """Write psnr_between(truth, estimate, low, high): the PSNR in dB of values that can run from low to high."""
    truth = np.array([0.0, 0.25, 0.5, 0.75])
    cases = [
        (truth, truth + 0.1, 0.0, 1.0, 20.0),
        (np.full(4, -1.0), np.full(4, -0.8), -1.0, 1.0, 20.0),
        (np.full(4, 10, np.uint8), np.full(4, 50, np.uint8), 0, 255, 10 * math.log10(255**2 / 1600)),
    ]
    for given, estimate, low, high, right in cases:
        answer = float(finished(value(given.copy(), estimate.copy(), low, high)))
        if math.isclose(answer, right, abs_tol=1e-6):
            continue
        where = f"For truth {given.tolist()}, estimate {estimate.tolist()} and the range {low:g} to {high:g}"
        if low < 0 and math.isclose(answer, right - 20 * math.log10(2), abs_tol=1e-6):
            return f"{where}, R is high − low = 2, not 1."
        if given.dtype == np.uint8:
            return f"{where} it is {right:.2f} dB, yours {answer:.2f}. Bytes minus bytes are bytes: use floats."
        if high == 1 and math.isclose(answer, 10 * math.log10(0.75**2 / 0.01), abs_tol=1e-6):
            return f"{where}, R is 1, what the values can be, and not 0.75, what happens to be the largest."
        if math.isclose(answer, right / 2, abs_tol=1e-6):
            return f"{where} it is {right:.2f} dB, yours is half of that: R is squared in the formula."
        return f"{where} it is {right:.2f} dB; yours is {answer:.2f}."
    with np.errstate(divide="ignore"):
        same = float(value(truth.copy(), truth.copy(), 0.0, 1.0))
    return None if same == math.inf else f"For equal pictures the PSNR is infinite, np.inf; yours is {same:g}."
