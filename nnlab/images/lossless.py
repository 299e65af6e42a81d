"""Does Pillow give every bit that a file holds? Where it does not, the reason in words."""

from __future__ import annotations

from typing import BinaryIO

from PIL import Image

MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "I;16", "I;16L", "I;16B")  # what nnlab takes from Pillow
WHITE_IS_ZERO = 0
PHOTOMETRIC = 262  # TIFF tag


def reason_for_loss(image: Image.Image, file: BinaryIO) -> str | None:
    """Why the opened (not yet decoded) picture cannot be had without loss, or None where it can."""
    check = _BY_FORMAT.get(image.format or "")
    if check is not None and (reason := check(image, file)):
        return reason
    if image.mode not in MODES and not (image.format == "PPM" and image.mode == "I"):
        return f"its pixels are of mode {image.mode}, for which 8- and 16-bit grey or colour has no exact values"
    layout = _layout(image)
    deep = ";16" in layout or "SGI16" in layout
    if ";12" in layout or (deep and image.mode in ("L", "LA", "RGB", "RGBA") and image.format != "BMP"):
        return "it holds more than 8 bits a sample, and Pillow would drop some without a word"
    return None


def _layout(image: Image.Image) -> str:
    """How the samples lie in the file, in Pillow's words, as in "raw RGB;16B"."""
    for tile in getattr(image, "tile", ()):
        arguments = tile.args if isinstance(tile.args, str) else next(iter(tile.args or ()), "")
        return f"{tile.codec_name} {arguments}"
    return ""


def _portable_map(image: Image.Image, file: BinaryIO) -> str | None:
    """PPM and PGM may have any highest value; only those that divide 255 or 65535 scale without rounding."""
    arguments = image.tile[0].args  # type: ignore[attr-defined]
    highest = arguments[1] if isinstance(arguments, tuple) and isinstance(arguments[1], int) else 255
    exact = 65535 % highest == 0 if image.mode == "I" else highest <= 255 and 255 % highest == 0
    return None if exact or image.mode == "F" else f"its highest value is {highest}, and Pillow would round its samples"


def _jpeg_2000(image: Image.Image, file: BinaryIO) -> str | None:
    """Bits a sample from the SIZ marker (ISO/IEC 15444-1, A.5.1)."""
    file.seek(0)
    head = file.read(1 << 16)
    at = head.find(b"\xff\x4f\xff\x51")
    if at < 0 or len(head) < at + 43:
        return "its bits a sample could not be found"
    channels = int.from_bytes(head[at + 40 : at + 42], "big")
    bits = [(byte & 0x7F) + 1 for byte in head[at + 42 : at + 42 + 3 * channels : 3]]
    if set(bits) == {8} or bits == [16]:
        return None
    return f"it holds {', '.join(map(str, bits))} bits a sample, and Pillow would change its values"


def _avif(image: Image.Image, file: BinaryIO) -> str | None:
    """The high_bitdepth flag of the av1C box (AV1 codec ISO media file format binding, 2.3)."""
    file.seek(0)
    head = file.read(1 << 16)
    at = head.find(b"av1C")
    if at < 0 or len(head) < at + 7:
        return "its bits a sample could not be found"
    return "it holds 10 or 12 bits a sample, and Pillow would keep 8" if head[at + 6] & 0x40 else None


def _tiff(image: Image.Image, file: BinaryIO) -> str | None:
    inverted = image.tag_v2.get(PHOTOMETRIC) == WHITE_IS_ZERO and image.mode.startswith("I")  # type: ignore[attr-defined]
    return "it stores white as 0 in 16 bits, which Pillow would show as a negative" if inverted else None


def _never(image: Image.Image, file: BinaryIO) -> str | None:
    return f"{image.format} pictures can hold numbers that Pillow would clip or reinterpret"


_BY_FORMAT = {
    "PPM": _portable_map, "JPEG2000": _jpeg_2000, "AVIF": _avif, "TIFF": _tiff, "DDS": _never, "FITS": _never,
}  # fmt: skip
