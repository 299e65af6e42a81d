"""Other sizes, sheets of pictures, differences, animations."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from nnlab.datasets.files import data_path
from nnlab.errors import ImageFileError, ShapeError, UnknownName
from nnlab.images import difference, read_image, resize, side_by_side, to_unit, write_animation


def test_nearest_repeats_pixels():
    picture = np.array([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]) / 5
    large = resize(picture, 4, 6, method="nearest")
    assert large.dtype == np.float64
    np.testing.assert_allclose(large, picture.repeat(2, 0).repeat(2, 1), atol=1e-7)


def test_mean_averages_areas():
    picture = np.random.default_rng(0).random((6, 8, 3))
    small = resize(picture, 3, 4, method="mean")
    np.testing.assert_allclose(small, picture.reshape(3, 2, 4, 2, 3).mean((1, 3)), atol=1e-6)


def test_bicubic_keeps_a_slope_and_the_type():
    """Inside, a cubic curve through a straight slope is that slope; whole numbers are clipped, not wrapped round."""
    slope = np.tile(np.arange(16.0), (16, 1))
    large = resize(slope, 16, 32, method="bicubic")
    np.testing.assert_allclose(large[8, 6:-6], np.arange(32)[6:-6] / 2 - 0.25, atol=1e-5)
    for dtype in (np.uint8, np.uint16):
        edge = np.zeros((8, 8), dtype)
        edge[:, 4:] = np.iinfo(dtype).max
        large = resize(edge, 8, 32, method="bicubic")
        assert large.dtype == dtype
        assert (np.diff(large[0].astype(int)) >= 0).sum() >= 29
        assert large[0, :4].max() == 0
        assert large[0, -4:].min() == np.iinfo(dtype).max


def test_resize_refuses():
    with pytest.raises(UnknownName, match="bicubic"):
        resize(np.zeros((2, 2)), 3, 3, method="bicubik")
    with pytest.raises(ShapeError):
        resize(np.zeros((2, 2)), 0, 3, method="mean")
    with pytest.raises(ShapeError):
        resize(np.zeros(4), 3, 3, method="mean")


def test_side_by_side():
    black, grey = np.zeros((2, 3)), np.full((2, 3), 0.5)
    sheet = side_by_side([black, grey], gap=1)
    np.testing.assert_array_equal(sheet, [[0, 0, 0, 1, 0.5, 0.5, 0.5]] * 2)
    sheet = side_by_side([black, grey, black], columns=2, gap=1)
    assert sheet.shape == (5, 7)
    assert (sheet[3:, 4:] == 1).all()
    assert (sheet[3:, :3] == 0).all()
    colour = np.zeros((2, 3, 3), np.uint8)
    sheet = side_by_side([colour, np.full((2, 3), 7, np.uint8)], gap=1)
    assert sheet.shape == (2, 7, 3)
    assert (sheet[:, 3] == 255).all()
    assert (sheet[:, 4:] == 7).all()


def test_side_by_side_refuses():
    with pytest.raises(ShapeError, match="resize"):
        side_by_side([np.zeros((2, 3)), np.zeros((3, 2))])
    with pytest.raises(ShapeError, match="resize"):
        side_by_side([np.zeros((2, 3)), np.zeros((2, 3), np.uint8)])
    with pytest.raises(ShapeError, match="no picture"):
        side_by_side([])
    with pytest.raises(ValueError, match="columns"):
        side_by_side([np.zeros((2, 3))], columns=0)


def test_difference_says_which_way():
    truth, estimate = np.array([[0.5, 0.5, 0.0]]), np.array([[0.5, 0.7, 1.4]], np.float32)
    np.testing.assert_allclose(difference(truth, estimate), [[0.5, 0.6, 1.0]], atol=1e-7)
    with pytest.raises(ShapeError):
        difference(truth, estimate.T)


@pytest.mark.parametrize("name", ["a.gif", "a.png", "a.apng"])
@pytest.mark.parametrize("shape", [(4, 6), (4, 6, 3)])
def test_animation(tmp_path, name, shape):
    frames = [np.full(shape, level, np.uint8) for level in (10, 100, 200)]
    frames[1][1, 2] = 50
    write_animation(tmp_path / name, frames, seconds=0.2, hold=1.0)
    with Image.open(tmp_path / name) as animation:
        assert animation.n_frames == 3
        assert animation.info["loop"] == 0
        for i, seconds in enumerate((200, 200, 1000)):
            animation.seek(i)
            shown = np.asarray(animation.convert("L" if len(shape) == 2 else "RGB"))
            np.testing.assert_array_equal(shown, frames[i])
            assert animation.info["duration"] == seconds
    if name.endswith("png"):
        np.testing.assert_array_equal(read_image(tmp_path / name, frame=2)[0, 0], frames[2][0, 0])


def test_animation_refuses(tmp_path):
    frame = np.zeros((4, 6), np.uint8)
    for frames, error in (
        ([], ShapeError),
        ([frame, frame.T], ShapeError),
        ([frame.astype(np.uint16)], TypeError),
        ([frame / 2], TypeError),
    ):
        with pytest.raises(error):
            write_animation(tmp_path / "a.gif", frames)
    with pytest.raises(ImageFileError, match=r"\.gif, \.png or \.apng"):
        write_animation(tmp_path / "a.mp4", [frame])
    with pytest.raises(ValueError, match="seconds"):
        write_animation(tmp_path / "a.gif", [frame], seconds=0)
    assert list(tmp_path.iterdir()) == []


def test_the_cub_at_200(host64):
    """The share of ink that the course states, and the floor that every training run is judged by."""
    ink = 1 - to_unit(resize(read_image(data_path("simba_474.png")), 200, 200, method="mean"))
    assert ink.mean() == pytest.approx(0.098, abs=0.003)
    assert ink.var() == pytest.approx(0.0702, abs=0.001)


def test_an_animation_of_device_arrays(tmp_path, b):
    """D-02 (a)."""
    frames = [np.full((2, 3), level, np.uint8) for level in (0, 255)]
    with b.measure() as receipt:
        write_animation(tmp_path / "a.png", [b.asarray(frame) for frame in frames])
    assert receipt.d2h_copies == (0 if b.is_host else 2)
    assert [read_image(tmp_path / "a.png", frame=i).tolist() for i in (0, 1)] == [frame.tolist() for frame in frames]
