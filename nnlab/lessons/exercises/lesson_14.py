"""The exercises of lesson 14, a network that draws."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnlab.backends import NumpyBackend
from nnlab.images import constant_image, pixel_centres, psnr, render
from nnlab.lessons.exercises import Unfinished, exercise, finished
from nnlab.lessons.text import unfilled


@exercise("14.layout", right="Row by row, x before y, at pixel centres: pictures of any shape, not only squares.")
def layout(value: Any) -> str | None:
    """Write layout(picture): X of shape (H·W, 2), x to the right, y downwards, and y of shape (H·W, 1), row by row."""
    picture = np.arange(6.0).reshape(2, 3) / 5
    answer = finished(value(picture.copy()))
    if any(unfilled(part) for part in answer):
        raise Unfinished
    x, y = (np.asarray(part, dtype=float) for part in answer)
    if x.shape != (6, 2) or y.shape != (6, 1):
        return f"For 2 rows and 3 columns X is (6, 2) and y is (6, 1); yours are {x.shape} and {y.shape}."
    right = pixel_centres(2, 3, backend=NumpyBackend(dtype="float64"))
    if np.allclose(y[:, 0], picture.T.ravel()):
        return "Your values run down the columns. picture.reshape(-1, 1) runs along the rows."
    if not np.allclose(y[:, 0], picture.ravel()):
        return f"y holds the values row by row, {picture.ravel()}; yours are {y[:, 0]}."
    if np.allclose(x, right):
        return None
    if np.allclose(x, right[:, ::-1]):
        return "Your columns are y, x. Column 0 is x, which rises to the right."
    if np.allclose(x[[0, 2]], [[-1, -1], [1, -1]]):
        return "Your pixels at the border lie on the border. Centres lie half a pixel inside: (2 i + 1) / n - 1."
    place = int(np.flatnonzero(~np.isclose(x, right).all(axis=1))[0])
    return f"Value {y[place, 0]:g} lies at {np.round(right[place], 3)}; yours at {np.round(x[place], 3)}."


@exercise("14.decibels", right="Half the error is 3 dB, a tenth of it is 10 dB: each dB takes a fifth of it away.")
def decibels(value: Any) -> str | None:
    """Write decibels_of(mse): the PSNR of a picture whose values lie between 0 and 1."""
    errors = np.array([1.0, 0.1, 0.0702, 1e-3])
    answer = np.array([float(finished(value(float(error)))) for error in errors])
    right = -10 * np.log10(errors)
    if np.allclose(answer, right):
        return None
    if np.allclose(answer, -right):
        return "The sign: a smaller error is a higher PSNR."
    if np.allclose(answer, 2 * right):
        return "20 log10 belongs to the root of the mean squared error; for the mean itself it is 10 log10."
    if np.allclose(answer, right * np.log(10)):
        return "A decibel counts in powers of ten: log10, not the natural logarithm."
    return f"An error of 0.1 is 10 dB; yours says {answer[1]:.4g}."


@exercise("14.own", right="A picture of yours, as a function. Lesson 15 makes it sharp.")
def own(value: Any) -> str | None:
    """Give the path of a picture and run the cell: it trains a network and hands over (picture, model)."""
    picture, model = value
    height, width = picture.shape[:2]
    seen = np.asarray(render(model, height, width), dtype=float)
    if seen.shape != picture.shape:
        return f"The picture has shape {picture.shape}, the render {seen.shape}: a network needs an output a channel."
    floor = psnr(picture, constant_image(picture), data_range=1.0)
    reached = psnr(picture, seen, data_range=1.0)
    if reached < floor + 0.5:
        return f"{reached:.1f} dB, against {floor:.1f} for a single colour: it has not learned yet. Take more steps."
    return None
