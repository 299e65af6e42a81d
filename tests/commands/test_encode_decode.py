"""`nnlab encode` and `nnlab decode`: the way round, and one clear line for whatever is wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

from nnlab.cli import main
from nnlab.images import read_image, write_image


@pytest.mark.parametrize("depth", [8, 16])
@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3)])
def test_there_and_back(tmp_path, monkeypatch, capsys, shape, depth):
    monkeypatch.chdir(tmp_path)
    image = np.random.default_rng(0).integers(0, 2**depth, shape).astype(f"uint{depth}")
    write_image("in.png", image)
    assert main(["encode", "in.png", "a.csv"]) == 0
    assert main(["decode", "a.csv", "out.png"]) == 0
    np.testing.assert_array_equal(read_image("out.png"), image)
    assert read_image("out.png").dtype == image.dtype
    kind = "colour" if len(shape) == 3 else "grey"
    lines = [f"{name}: 5 rows x 7 columns, {kind}, {depth} bits" for name in ("a.csv", "out.png")]
    assert capsys.readouterr().out.splitlines() == lines


def test_json(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_image("in.png", np.zeros((2, 3), np.uint8))
    assert main(["encode", "in.png", "a.csv", "--json"]) == 0
    told = {"path": "a.csv", "height": 2, "width": 3, "channels": 1, "depth": 8}
    assert json.loads(capsys.readouterr().out) == told


def test_background_and_frame(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Image.new("RGBA", (1, 1), (0, 0, 0, 0)).save("clear.png")
    assert main(["encode", "clear.png", "a.csv", "--background", "1,2,3"]) == 0
    assert (tmp_path / "a.csv").read_text().splitlines()[1] == "1,2,3"
    frames = [Image.new("L", (2, 2), grey) for grey in (9, 200)]
    frames[0].save("two.gif", save_all=True, append_images=frames[1:])
    assert main(["encode", "two.gif", "b.csv", "--frame", "1"]) == 0
    assert (tmp_path / "b.csv").read_text().splitlines()[1].split(",")[0] == "200"


def test_errors_are_one_line_and_write_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_image("in.png", np.zeros((2, 3), np.uint8))
    write_image("old.png", np.zeros((2, 3), np.uint8))
    (tmp_path / "folder").mkdir()
    (tmp_path / "bad.csv").write_text("nnlab-image,height=1,width=1,channels=1,depth=8\n256\n")
    before = sorted(path.name for path in tmp_path.iterdir())
    for argv, word in (
        (["encode", "absent.png", "a.csv"], "no such file; check the name"),
        (["encode", "bad.csv", "a.csv"], "not a picture"),
        (["encode", "in.png", "in.png"], "another name"),
        (["encode", "in.png", "nowhere/a.csv"], "make it first"),
        (["encode", "folder", "a.csv"], "folder: is a folder; name a file in it"),
        (["encode", "in.png", "folder"], "folder: is a folder; name a file in it"),
        (["encode", "in.png", ""], "is a folder; name a file in it"),
        (["encode", "in.png", "old.png"], "end the name in .csv"),
        (["encode", "in.png", "a.csv", "--max-pixels", "5"], "--max-pixels 6"),
        (["decode", "bad.csv", "a.png"], "bad.csv, line 2: '256' is not a whole number from 0 to 255"),
        (["decode", "bad.csv", "a.jpg"], "PNG only"),
        (["decode", "in.png", "a.png"], "line 1"),
        (["decode", "folder", "a.png"], "folder: is a folder; name a file in it"),
    ):
        assert main(argv) == 1, argv
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(f"nnlab {argv[0]}: ")
        assert err.count("\n") == 1
        assert word in err, argv
        assert "Traceback" not in err
    assert sorted(path.name for path in tmp_path.iterdir()) == before
