"""Pictures that are not PNG, pictures that would lose something, pictures that are too large."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from nnlab.errors import ImageFileError, ShapeError
from nnlab.images import from_unit, read_image, to_unit, write_image
from nnlab.images.lossless import reason_for_loss

GREY = np.arange(35, dtype=np.uint8).reshape(5, 7) * 7
COLOUR = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)


def as_pillow(path) -> np.ndarray:
    with Image.open(path) as opened:
        return np.asarray(opened.convert("RGB"))


@pytest.mark.parametrize(
    "name", ["a.bmp", "a.tif", "a.ppm", "a.tga", "a.pcx", "a.sgi", "a.gif", "a.webp", "a.jp2", "a.qoi"]
)
def test_lossless_formats(tmp_path, name):
    options = {"lossless": True} if name == "a.webp" else {}
    Image.fromarray(COLOUR).save(tmp_path / name, **options)
    image = read_image(tmp_path / name)
    if name == "a.gif":
        assert image.shape == COLOUR.shape  # 35 colours fit its palette, but Pillow's writer picks its own
        np.testing.assert_array_equal(image, as_pillow(tmp_path / name))
    else:
        np.testing.assert_array_equal(image, COLOUR)


def test_grey_of_other_formats(tmp_path):
    for name in ("a.bmp", "a.tif", "a.pgm", "a.jp2"):
        Image.fromarray(GREY).save(tmp_path / name)
        np.testing.assert_array_equal(read_image(tmp_path / name), GREY)
    deep = GREY.astype(np.uint16) * 257 + 3
    for name in ("b.tif", "b.pgm", "b.jp2"):
        Image.fromarray(deep).save(tmp_path / name)
        image = read_image(tmp_path / name)
        assert image.dtype == np.uint16
        np.testing.assert_array_equal(image, deep)


def test_jpeg_is_read_as_decoded(tmp_path):
    Image.fromarray(COLOUR).save(tmp_path / "a.jpg")
    np.testing.assert_array_equal(read_image(tmp_path / "a.jpg"), as_pillow(tmp_path / "a.jpg"))


def tiff(path, samples: np.ndarray, photometric: int) -> None:
    """The smallest uncompressed little-endian TIFF with 16 bits a sample (TIFF 6.0)."""
    height, width, planes = samples.shape
    entries = [
        (256, 3, 1, width), (257, 3, 1, height), (258, 3, planes, 16), (259, 3, 1, 1), (262, 3, 1, photometric),
        (273, 4, 1, 200), (277, 3, 1, planes), (278, 3, 1, height), (279, 4, 1, samples.size * 2),
    ]  # fmt: skip
    if planes > 1:
        entries[2] = (258, 3, planes, 190)
    folder = struct.pack("<2sHIH", b"II", 42, 8, len(entries))
    folder += b"".join(struct.pack("<HHII", *entry) for entry in entries) + b"\0\0\0\0"
    path.write_bytes(folder.ljust(190, b"\0") + struct.pack("<HHH", 16, 16, 16) + b"\0\0\0\0" + samples.tobytes())


def test_formats_pillow_would_reduce_are_refused(tmp_path):
    deep = np.random.default_rng(3).integers(0, 65536, (5, 7, 3)).astype("<u2")
    tiff(tmp_path / "a.tif", deep, 2)
    with Image.open(tmp_path / "a.tif") as opened:
        assert opened.mode == "RGB"  # what would happen without a word
    tiff(tmp_path / "negative.tif", deep[..., :1].copy(), 0)
    (tmp_path / "a.ppm").write_bytes(b"P6 7 5 65535\n" + deep.byteswap().tobytes())
    (tmp_path / "odd.ppm").write_bytes(b"P6 7 5 100\n" + (deep % 100).astype(np.uint8).tobytes())
    (tmp_path / "odd.pgm").write_bytes(b"P5 7 5 1000\n" + (deep[..., 0] % 1000).astype(">u2").tobytes())
    header = struct.pack(">HBBHHHH", 474, 0, 2, 3, 7, 5, 3).ljust(512, b"\0")
    (tmp_path / "a.sgi").write_bytes(header + deep.byteswap().tobytes())
    for path in sorted(tmp_path.iterdir()):
        with pytest.raises(ImageFileError, match=rf"{path.name}: .*convert it to a PNG"):
            read_image(path)


@pytest.mark.parametrize("mode", ["CMYK", "YCbCr", "LAB", "F", "I"])
def test_modes_without_exact_values_are_refused(tmp_path, mode):
    Image.new(mode, (3, 2)).save(tmp_path / "a.tif")
    with pytest.raises(ImageFileError, match=f"mode {mode}"):
        read_image(tmp_path / "a.tif")


def test_jpeg_2000_and_avif_with_more_bits_are_refused(tmp_path):
    Image.fromarray(COLOUR).save(tmp_path / "a.jp2")
    data = bytearray((tmp_path / "a.jp2").read_bytes())
    at = data.index(b"\xff\x4f\xff\x51")
    assert data[at + 42 : at + 51 : 3] == b"\x07\x07\x07"
    data[at + 42] = 11
    (tmp_path / "a.jp2").write_bytes(data)
    with pytest.raises(ImageFileError, match="12, 8, 8 bits a sample"):
        read_image(tmp_path / "a.jp2")


def test_avif_with_more_bits_is_refused():
    """Pillow cannot write such a file, so the check is handed one whose flag is set."""
    stream = io.BytesIO()
    Image.fromarray(COLOUR).save(stream, "AVIF")
    assert read_stream(stream.getvalue()) is None
    data = bytearray(stream.getvalue())
    data[data.index(b"av1C") + 6] |= 0x40
    assert "10 or 12 bits" in read_stream(bytes(data))


def read_stream(data: bytes) -> str | None:
    opened = Image.new("RGB", (7, 5))
    opened.format = "AVIF"
    return reason_for_loss(opened, io.BytesIO(data))


def test_backgrounds(tmp_path):
    Image.fromarray(np.array([[[255, 0, 0, 0], [0, 0, 255, 128]]], np.uint8)).save(
        tmp_path / "a.webp", lossless=True, exact=True
    )
    np.testing.assert_array_equal(read_image(tmp_path / "a.webp"), [[[255, 255, 255], [127, 127, 255]]])
    np.testing.assert_array_equal(read_image(tmp_path / "a.webp", background=0), [[[0, 0, 0], [0, 0, 128]]])
    np.testing.assert_array_equal(
        read_image(tmp_path / "a.webp", background=(10, 20, 30)), [[[10, 20, 30], [5, 10, 143]]]
    )
    for wrong in (256, -1, 0.5, (1, 2)):
        with pytest.raises(ValueError, match="background must be"):
            read_image(tmp_path / "a.webp", background=wrong)
    Image.fromarray(np.array([[[200, 0]]], np.uint8), "LA").save(tmp_path / "grey.png")
    with pytest.raises(ImageFileError, match="one number"):
        read_image(tmp_path / "grey.png", background=(1, 2, 3))


def test_animations_ask_for_a_frame(tmp_path):
    first, second = (Image.fromarray(np.full((4, 6), level, np.uint8)) for level in (10, 200))
    first.save(tmp_path / "a.gif", save_all=True, append_images=[second])
    with pytest.raises(ImageFileError, match=r"holds 2 pictures.*frame=0"):
        read_image(tmp_path / "a.gif")
    assert read_image(tmp_path / "a.gif", frame=0).flat[0] == 10
    assert read_image(tmp_path / "a.gif", frame=1).flat[0] == 200
    with pytest.raises(ImageFileError, match="no frame 2"):
        read_image(tmp_path / "a.gif", frame=2)


def test_bombs_are_refused_with_the_switch(tmp_path):
    """A few bytes that claim 60,000 x 60,000 pixels: refused before memory is taken."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    for depth, colour_type in ((8, 2), (16, 2)):
        head = chunk(b"IHDR", struct.pack(">IIBBBBB", 60000, 60000, depth, colour_type, 0, 0, 0))
        bomb = b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(100))) + chunk(b"IEND", b"")
        (tmp_path / "bomb.png").write_bytes(bomb)
        with pytest.raises(ImageFileError, match=r"60000 x 60000 = 3,600,000,000 .*max_pixels=3600000000"):
            read_image(tmp_path / "bomb.png")
    (tmp_path / "bomb.bmp").write_bytes(
        b"BM" + struct.pack("<IIIIiiHHIIiiII", 99, 0, 54, 40, 60000, 60000, 1, 24, 0, 0, 0, 0, 0, 0)
    )
    with pytest.raises(ImageFileError, match="max_pixels=3600000000"):
        read_image(tmp_path / "bomb.bmp")
    write_image(tmp_path / "a.png", GREY)
    with pytest.raises(ImageFileError, match="max_pixels=35"):
        read_image(tmp_path / "a.png", max_pixels=34)
    np.testing.assert_array_equal(read_image(tmp_path / "a.png", max_pixels=35), GREY)
    np.testing.assert_array_equal(read_image(tmp_path / "a.png", max_pixels=None), GREY)


def test_not_a_picture(tmp_path):
    (tmp_path / "a.png").write_text("hello")
    with pytest.raises(ImageFileError, match=r"a\.png: not a picture"):
        read_image(tmp_path / "a.png")
    with pytest.raises(FileNotFoundError):
        read_image(tmp_path / "absent.png")


def test_values_that_are_no_picture(tmp_path):
    with pytest.raises(TypeError, match="from_unit"):
        write_image(tmp_path / "a.png", np.zeros((2, 3)))
    for shape in ((6,), (2, 3, 1), (2, 3, 4), (0, 3), (1, 2, 3, 3)):
        with pytest.raises(ShapeError, match="never guesses"):
            write_image(tmp_path / "a.png", np.zeros(shape, np.uint8))
    with pytest.raises(ImageFileError, match="PNG only"):
        write_image(tmp_path / "a.jpg", GREY)
    with pytest.raises(TypeError, match="to_unit"):
        from_unit(GREY)
    with pytest.raises(TypeError):
        to_unit(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="NaN"):
        from_unit(np.array([[0.0, np.nan]]))
    with pytest.raises(ValueError, match="depth"):
        from_unit(np.zeros((2, 2)), depth=12)
    np.testing.assert_array_equal(from_unit(np.array([[-0.2, 0.5, 1.01]], np.float32)), [[0, 128, 255]])
    tall = np.random.default_rng(0).random((200, 3, 3))
    np.testing.assert_array_equal(from_unit(tall, depth=16), np.rint(tall * 65535))
    assert list(tmp_path.iterdir()) == []
