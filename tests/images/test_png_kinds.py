"""D-19: every colour type and depth of PNG that exists, written by a third hand (pypng), read without losing a bit."""

from __future__ import annotations

import numpy as np
import png
import pytest
from PIL import Image, ImageOps

from nnlab.errors import ImageFileError
from nnlab.images import from_unit, read_image, to_unit, write_image

GREY = [(depth, False) for depth in (1, 2, 4, 8, 16)] + [(depth, True) for depth in (8, 16)]
COLOUR = [(depth, alpha) for depth in (8, 16) for alpha in (False, True)]


def samples(planes: int, depth: int) -> np.ndarray:
    """Random samples of a picture of 5 rows and 7 columns, so that rows and columns cannot be swapped unseen."""
    return np.random.default_rng(planes * 100 + depth).integers(0, 2**depth, (5, 7, planes), dtype=np.uint16)


def write_png(path, values, **kind) -> None:
    with open(path, "wb") as file:
        png.Writer(width=values.shape[1], height=values.shape[0], **kind).write(
            file, values.reshape(len(values), -1).tolist()
        )


def laid_over(values, alpha, top, background):
    """Over a background, in exact fractions, rounded to the nearest level."""
    exact = (values.astype(object) * alpha + background * (top - alpha)) * 2 + top
    return exact // (2 * top)


@pytest.mark.parametrize("interlace", [False, True])
@pytest.mark.parametrize(("depth", "alpha"), GREY)
def test_grey(tmp_path, depth, alpha, interlace):
    values = samples(2 if alpha else 1, depth)
    write_png(tmp_path / "a.png", values, greyscale=True, alpha=alpha, bitdepth=depth, interlace=interlace)
    image = read_image(tmp_path / "a.png")
    assert image.dtype == (np.uint16 if depth == 16 else np.uint8)
    assert image.shape == (5, 7)
    top = 2**depth - 1
    expected = values[..., 0] * (1 if depth >= 8 else 255 // top)
    if alpha:
        expected = laid_over(values[..., 0], values[..., 1].astype(object), top, top)
    np.testing.assert_array_equal(image, expected.astype(int))


@pytest.mark.parametrize("interlace", [False, True])
@pytest.mark.parametrize(("depth", "alpha"), COLOUR)
def test_colour(tmp_path, depth, alpha, interlace):
    values = samples(4 if alpha else 3, depth)
    write_png(tmp_path / "a.png", values, greyscale=False, alpha=alpha, bitdepth=depth, interlace=interlace)
    image = read_image(tmp_path / "a.png")
    assert image.dtype == (np.uint16 if depth == 16 else np.uint8)
    top = 2**depth - 1
    expected = values if not alpha else laid_over(values[..., :3], values[..., 3:].astype(object), top, top)
    np.testing.assert_array_equal(image, expected.astype(int))


@pytest.mark.parametrize("see_through", [False, True])
@pytest.mark.parametrize("depth", [1, 2, 4, 8])
def test_palette(tmp_path, depth, see_through):
    palette = [(200 - 13 * i, (7 * i) % 256, (91 * i) % 256) for i in range(min(2**depth, 16))]
    if see_through:
        palette = [(*colour, 17 * (i % 16)) for i, colour in enumerate(palette)]
    values = samples(1, depth) % len(palette)
    write_png(tmp_path / "a.png", values, palette=palette, bitdepth=depth)
    expected = np.asarray(palette)[values[..., 0]]
    if see_through:
        expected = laid_over(expected[..., :3], expected[..., 3:].astype(object), 255, 255)
    image = read_image(tmp_path / "a.png")
    assert image.dtype == np.uint8
    np.testing.assert_array_equal(image, expected.astype(int))


@pytest.mark.parametrize("depth", [1, 2, 4, 8, 16])
def test_one_transparent_grey(tmp_path, depth):
    values = samples(1, depth)
    gone = int(values[2, 3, 0])
    write_png(tmp_path / "a.png", values, greyscale=True, bitdepth=depth, transparent=gone)
    top, scale = 2**depth - 1, 1 if depth >= 8 else 255 // (2**depth - 1)
    expected = np.where(values == gone, 0, values)[..., 0] * scale
    image = read_image(tmp_path / "a.png", background=0)
    np.testing.assert_array_equal(image, expected)
    assert read_image(tmp_path / "a.png")[2, 3] == top * scale


@pytest.mark.parametrize("depth", [8, 16])
def test_one_transparent_colour(tmp_path, depth):
    values = samples(3, depth)
    gone = tuple(values[2, 3].tolist())
    write_png(tmp_path / "a.png", values, greyscale=False, bitdepth=depth, transparent=gone)
    values[2, 3] = (0, 2**depth - 1, 0)
    np.testing.assert_array_equal(read_image(tmp_path / "a.png", background=(0, 255, 0)), values)


def test_the_reported_cases(tmp_path):
    write_png(tmp_path / "a.png", np.array([[0, 257, 32896, 65535]])[..., None], greyscale=True, bitdepth=16)
    unit = to_unit(read_image(tmp_path / "a.png"))
    np.testing.assert_allclose(unit, [[0, 1 / 255, 0.501960784, 1]], atol=5e-10)
    colours = np.array([[[255, 0, 0, 0], [0, 0, 255, 128]]])
    write_png(tmp_path / "c.png", colours, greyscale=False, alpha=True, bitdepth=8)
    np.testing.assert_array_equal(read_image(tmp_path / "c.png"), [[[255, 255, 255], [127, 127, 255]]])
    write_png(tmp_path / "d.png", np.array([[[200, 255]]]), greyscale=True, alpha=True, bitdepth=8)
    assert to_unit(read_image(tmp_path / "d.png")) == 200 / 255
    write_png(tmp_path / "e.png", np.array([[[0], [1]]]), greyscale=True, bitdepth=1)
    np.testing.assert_array_equal(to_unit(read_image(tmp_path / "e.png")), [[0, 1]])


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3), (1, 1), (1, 9, 3)])
@pytest.mark.parametrize("depth", [8, 16])
def test_what_is_written_comes_back(tmp_path, shape, depth):
    image = np.random.default_rng(1).integers(0, 2**depth, shape).astype(f"uint{depth}")
    write_image(tmp_path / "a.png", image)
    back = read_image(tmp_path / "a.png")
    assert back.dtype == image.dtype
    np.testing.assert_array_equal(back, image)
    np.testing.assert_array_equal(from_unit(to_unit(image), depth=depth), image)
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


def test_pillow_agrees_where_it_loses_nothing(tmp_path):
    image = samples(3, 8).astype(np.uint8)
    write_image(tmp_path / "a.png", image)
    with Image.open(tmp_path / "a.png") as opened:
        np.testing.assert_array_equal(np.asarray(opened), image)


def test_every_orientation(tmp_path):
    """Pillow's own transposition is the judge; 16-bit colour takes the other road, through pypng."""
    image = samples(3, 8).astype(np.uint8)
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        Image.fromarray(image).save(tmp_path / "a.png", exif=exif)
        with Image.open(tmp_path / "a.png") as opened:
            upright = np.asarray(ImageOps.exif_transpose(opened))
        np.testing.assert_array_equal(read_image(tmp_path / "a.png"), upright)
        Image.fromarray(image).save(tmp_path / "a.jpg", exif=exif)
        assert read_image(tmp_path / "a.jpg").shape == upright.shape
        deep = image.astype(np.uint16) * 257
        write_image(tmp_path / "deep.png", deep)
        first, *others = png.Reader(bytes=(tmp_path / "deep.png").read_bytes()).chunks()
        with open(tmp_path / "deep.png", "wb") as file:
            png.write_chunks(file, [first, (b"eXIf", exif.tobytes().removeprefix(b"Exif\x00\x00")), *others])
        np.testing.assert_array_equal(read_image(tmp_path / "deep.png"), upright.astype(np.uint16) * 257)


@pytest.mark.parametrize("depth", [8, 16])
def test_damaged_png(tmp_path, depth):
    image = np.random.default_rng(0).integers(0, 2**depth, (40, 40, 3)).astype(f"uint{depth}")
    write_image(tmp_path / "a.png", image)
    good = (tmp_path / "a.png").read_bytes()
    cut = [good[:size] for size in (0, 20, 100, len(good) // 2, len(good) - 1)]
    flipped = [good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :] for at in (20, 200, len(good) - 14)]
    for bad in cut + flipped:  # the last one is in a checksum that Pillow does not look at
        (tmp_path / "bad.png").write_bytes(bad)
        with pytest.raises(ImageFileError, match=r"bad\.png"):
            read_image(tmp_path / "bad.png")
