"""Pictures as CSV: D-35, exact round trips, and files that are not as they must be."""

from __future__ import annotations

import numpy as np
import pytest

from nnlab import files
from nnlab.errors import ImageFileError
from nnlab.images import csv_to_image, image_to_csv

BYTES = (np.arange(18, dtype=np.uint8) * 14).reshape(2, 3, 3)
HEADER = "nnlab-image,height=2,width=3,channels=3,depth=8\n"


def test_the_reported_picture(tmp_path):
    """D-35: (2, 3, 3) with 0, 14, 28, ... in row-major order."""
    image_to_csv(BYTES, tmp_path / "a.csv")
    lines = (tmp_path / "a.csv").read_bytes().split(b"\n")
    assert lines[0] == HEADER.strip().encode()
    assert lines[1] == b"0,14,28"
    back = csv_to_image(tmp_path / "a.csv")
    assert back.shape == (2, 3, 3)
    assert back.dtype == np.uint8
    assert back[0, 0].tolist() == [0, 14, 28]
    assert back[0, 1].tolist() == [42, 56, 70]
    assert back[1, 0].tolist() == [126, 140, 154]
    np.testing.assert_array_equal(back, BYTES)


@pytest.mark.parametrize("depth", [8, 16])
@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (1, 1), (4, 1, 3), (300, 251), (211, 340, 3)])
def test_round_trip(tmp_path, shape, depth):
    """The larger ones need several blocks, in writing and in reading."""
    image = np.random.default_rng(depth).integers(0, 2**depth, shape).astype(f"uint{depth}")
    image_to_csv(image, tmp_path / "a.csv")
    back = csv_to_image(tmp_path / "a.csv")
    assert back.dtype == image.dtype
    np.testing.assert_array_equal(back, image)


def test_line_ends_of_other_systems(tmp_path):
    image_to_csv(BYTES, tmp_path / "a.csv")
    text = (tmp_path / "a.csv").read_bytes().replace(b"\n", b"\r\n")
    (tmp_path / "a.csv").write_bytes(text)
    np.testing.assert_array_equal(csv_to_image(tmp_path / "a.csv"), BYTES)


LINES = ["0,14,28", "42,56,70", "84,98,112", "126,140,154", "168,182,196", "210,224,238"]


def damaged(number: int, line: str) -> str:
    return HEADER + "".join(f"{line if i == number else good}\n" for i, good in enumerate(LINES, start=2))


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("", 1, "is not the header"),
        ("0,14,28\n", 1, "is not the header"),
        (HEADER.replace("width=3", "width=x"), 1, "is not the header"),
        (HEADER.replace("channels=3", "channels=4"), 1, "is not the header"),
        (HEADER.replace("depth=8", "depth=12"), 1, "is not the header"),
        (HEADER.replace("height=2", "height=0"), 1, "at least 1"),
        (damaged(4, "84,98"), 4, "has 2 values, but the header says channels=3"),
        (damaged(4, "84,98,112,5"), 4, "has 4 values"),
        (damaged(4, ""), 4, "has 1 values"),
        (damaged(5, "126,140,256"), 5, "'256' is not a whole number from 0 to 255"),
        (damaged(5, "126,140,-1"), 5, "'-1' is not a whole number"),
        (damaged(6, "168,1.5,196"), 6, "'1.5' is not a whole number"),
        (damaged(6, "168, 182,196"), 6, "' 182' is not a whole number"),
        (damaged(6, "168,nan,196"), 6, "'nan' is not a whole number"),
        (damaged(6, "168;182;196"), 6, "has 1 values"),
        (damaged(7, "1" * 300), 7, "has 1 values"),
        (damaged(0, "") + "1,2,3\n", 8, "a line too many: the header promises 6 pixels"),
        (HEADER + "\n".join(LINES[:5]) + "\n", 6, "ends after 5 of 6 pixels"),
        (HEADER, 1, "ends after 0 of 6 pixels"),
        (HEADER + "\n".join(LINES)[:-1], 7, "has no line end"),
        (HEADER + "\n".join(LINES), 7, "has no line end"),
    ],
)
def test_damage_is_named_by_line_with_the_cure(tmp_path, text, line, why):
    (tmp_path / "a.csv").write_text(text, newline="")
    with pytest.raises(ImageFileError) as caught:
        csv_to_image(tmp_path / "a.csv")
    message = str(caught.value)
    assert f"a.csv, line {line}: " in message
    assert why in message
    assert "nnlab encode" in message


def test_damage_deep_in_a_file_is_named_by_its_line(tmp_path):
    image_to_csv(np.zeros((700, 500, 3), np.uint16), tmp_path / "a.csv")
    lines = (tmp_path / "a.csv").read_text().splitlines()
    for bad in ("0,0,65536", "0,0,x", "0,0"):
        text = [*lines[:333333], bad, *lines[333334:]]
        (tmp_path / "bad.csv").write_text("\n".join(text) + "\n")
        with pytest.raises(ImageFileError, match="line 333334: "):
            csv_to_image(tmp_path / "bad.csv")


def test_a_header_that_claims_too_much_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text(HEADER.replace("height=2,width=3", "height=99999,width=99999"))
    with pytest.raises(ImageFileError, match="max_pixels=9999800001"):
        csv_to_image(tmp_path / "a.csv")


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    """The write breaks off half-way: the file that was there is untouched, and nothing else is left."""
    image_to_csv(BYTES, tmp_path / "a.csv")
    before = (tmp_path / "a.csv").read_bytes()

    def broken(handle):
        raise OSError("disk full")

    monkeypatch.setattr(files.os, "fsync", broken)
    with pytest.raises(OSError, match="disk full"):
        image_to_csv(BYTES[:, ::-1], tmp_path / "a.csv")
    monkeypatch.undo()
    assert (tmp_path / "a.csv").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
