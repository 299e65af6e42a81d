"""A picture of any size from a function of two coordinates."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from nnlab.backends import Array, Backend, NumpyBackend
from nnlab.errors import ShapeError
from nnlab.images.coordinates import centres_of, check_sides


class Paints(Protocol):
    """Anything that turns coordinates (rows, 2) into values (rows,) or (rows, channels), such as a network."""

    def __call__(self, coordinates: Array, /) -> Array: ...


def render(model: Paints, height: int, width: int, *, chunk: int = 65536, backend: Backend | None = None) -> np.ndarray:
    """What `model` gives at the pixel centres of a height x width picture: a host array (H, W), or (H, W, C).

    The values are the model's own, neither scaled nor clipped; `from_unit` makes pixels of them. One output a row
    gives (H, W). chunk: pixels at a time, so that memory does not grow with the picture.
    backend: where the coordinates go; by default the model's own `backend`, or float32 on the host without one.
    Raises ShapeError for sizes below 1 and for a model that does not give one row a pixel.
    """
    check_sides(height, width)
    if chunk < 1:
        raise ValueError(f"chunk must be at least one pixel, not {chunk}")
    home: Backend = backend or getattr(model, "backend", None) or NumpyBackend()
    picture: Any = None
    count = height * width
    for start in range(0, count, chunk):
        stop = min(start + chunk, count)
        values = model(home.asarray(centres_of(start, stop, height, width, str(home.dtype))))
        part = home.to_host(values)
        if part.ndim not in (1, 2) or len(part) != stop - start:
            raise ShapeError(
                f"the model gave shape {part.shape} for {stop - start} coordinates; "
                f"it must give ({stop - start},) or ({stop - start}, channels)"
            )
        if picture is None:
            picture = np.empty((count, *part.shape[1:]), part.dtype)
        picture[start:stop] = part
    channels = () if picture.ndim == 1 or picture.shape[1] == 1 else picture.shape[1:]
    return np.asarray(picture.reshape(height, width, *channels))
