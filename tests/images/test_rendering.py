"""Coordinates and renders: D-17, D-18, chunks, any callable."""

from __future__ import annotations

import numpy as np
import pytest

import nnlab
from nnlab.errors import ShapeError
from nnlab.images import pixel_centres, render


def test_pixel_centres(b):
    """D-17, with pixel centres."""
    xy = pixel_centres(3, 5, backend=b)
    assert b.owns(xy)
    assert xy.dtype == np.float32
    host = b.to_host(xy)
    assert host.shape == (15, 2)
    np.testing.assert_allclose(host[:5, 0], [-0.8, -0.4, 0, 0.4, 0.8], atol=1e-7)
    np.testing.assert_array_equal(host[:5, 1], host[0, 1])
    np.testing.assert_allclose(host[::5, 1], [-2 / 3, 0, 2 / 3], atol=1e-7)


def test_one_pixel_lies_at_zero(b):
    host = b.to_host(pixel_centres(1, 4, backend=b))
    np.testing.assert_allclose(host, [[-0.75, 0], [-0.25, 0], [0.25, 0], [0.75, 0]], atol=1e-7)
    for height, width in ((0, 3), (3, -1), (2.5, 3)):
        with pytest.raises(ShapeError, match="height and width"):
            pixel_centres(height, width, backend=b)


def test_a_picture_becomes_rows_and_comes_back(host64):
    """D-18: 2 rows, 3 columns; 0.4 sits at the top right."""
    image = np.array([[0, 1, 2], [3, 4, 5]]) / 5
    xy, values = pixel_centres(2, 3, backend=host64), image.reshape(-1, 1)
    np.testing.assert_array_equal(values.reshape(2, 3), image)
    (corner,) = xy[values[:, 0] == 0.4]
    assert corner[0] == xy[:, 0].max()
    assert corner[1] == xy[:, 1].min()


def test_renders_are_upright(host64):
    """D-18: x rises to the right, y downwards."""
    across = render(lambda xy: xy[:, 0], 4, 6, backend=host64)
    down = render(lambda xy: xy[:, 1], 4, 6, backend=host64)
    assert across.shape == down.shape == (4, 6)
    assert (np.diff(across, axis=0) == 0).all()
    assert (np.diff(across, axis=1) > 0).all()
    assert (np.diff(down, axis=1) == 0).all()
    assert (np.diff(down, axis=0) > 0).all()


@pytest.mark.parametrize("chunk", [1, 7, 24, 1000])
def test_chunks_change_nothing(host64, chunk):
    def colours(xy):
        return np.stack([xy[:, 0], xy[:, 1], xy[:, 0] * xy[:, 1]], axis=1)

    whole = render(colours, 4, 6, backend=host64)
    assert whole.shape == (4, 6, 3)
    np.testing.assert_array_equal(render(colours, 4, 6, chunk=chunk, backend=host64), whole)
    np.testing.assert_array_equal(whole.reshape(24, 3), colours(pixel_centres(4, 6, backend=host64)))


def test_a_network_renders_from_its_own_home(b):
    model = nnlab.nn.siren([2, 8, 1], backend=b, rng=np.random.default_rng(0))
    picture = render(model, 5, 7, chunk=10)
    assert isinstance(picture, np.ndarray)
    assert picture.dtype == np.float32
    assert picture.shape == (5, 7)
    direct = b.to_host(model(pixel_centres(5, 7, backend=b))).reshape(5, 7)
    np.testing.assert_allclose(picture, direct, atol=1e-6)


def test_at_most_a_chunk_is_asked_for():
    asked = []

    def model(xy):
        asked.append(len(xy))
        return xy[:, :1]

    render(model, 10, 10, chunk=30)
    assert asked == [30, 30, 30, 10]


def test_what_is_no_picture_is_refused():
    with pytest.raises(ShapeError, match="24 coordinates"):
        render(lambda xy: xy[:3], 4, 6)
    with pytest.raises(ShapeError, match="channels"):
        render(lambda xy: xy[:, :, None], 4, 6)
    with pytest.raises(ShapeError, match="height and width"):
        render(lambda xy: xy, 0, 6)
    with pytest.raises(ValueError, match="chunk"):
        render(lambda xy: xy, 4, 6, chunk=0)
