"""`nnlab train` and `nnlab render`: a small picture, learned, stopped, resumed, drawn large; and what is refused."""

from __future__ import annotations

import json
import os
import signal

import numpy as np
import pytest
from PIL import Image

import nnlab
from nnlab import nn
from nnlab.cli import main
from nnlab.images import from_unit, psnr, read_image, resize, to_unit, write_image
from nnlab.training import SGD, fit, load_checkpoint, save_checkpoint

SMALL = ["--hidden", "32,32", "--size", "24", "--steps", "300"]


@pytest.fixture
def folder(tmp_path, monkeypatch, image_i):
    """An empty folder with one picture of 16 rows and 24 columns in it."""
    monkeypatch.chdir(tmp_path)
    write_image("i.png", from_unit(image_i()))
    return tmp_path


def told(capsys):
    return json.loads(capsys.readouterr().out)


def test_a_picture_is_learned_and_drawn(folder, capsys):
    assert main(["train", "i.png", "--out", "i.safetensors", "--json", *SMALL]) == 0
    result = told(capsys)
    assert result["psnr"] > 40
    assert result["constant_psnr"] == pytest.approx(15.97, abs=0.01)
    assert result["beats_constant"] is True
    assert (result["height"], result["width"], result["step"], result["steps"]) == (16, 24, 300, 300)
    assert result["parameters"] == 2 * 32 + 32 + 32 * 32 + 32 + 32 + 1
    assert main(["render", "i.safetensors", "same.png"]) == 0
    assert main(["render", "i.safetensors", "large.png", "--size", "96", "--depth", "16"]) == 0
    lines = ["same.png: 16 rows x 24 columns, grey, 8 bits", "large.png: 64 rows x 96 columns, grey, 16 bits"]
    assert capsys.readouterr().out.splitlines() == lines
    truth = to_unit(read_image("i.png"))
    assert psnr(truth, to_unit(read_image("same.png")), data_range=1.0) > 40
    large = to_unit(read_image("large.png"))
    assert large.shape == (64, 96)
    assert psnr(truth, resize(large, 16, 24, method="mean"), data_range=1.0) > 20, "upside down, or mirrored?"


def test_a_colour_picture_and_the_other_network(folder, capsys, image_i):
    colour = np.stack([image_i(8, 6), image_i(8, 6)[::-1], 1 - image_i(8, 6)], axis=-1)
    write_image("c.png", from_unit(colour))
    options = ["--hidden", "16", "--size", "8x6", "--steps", "150", "--rate", "0.01", "--model", "tanh"]
    assert main(["train", "c.png", "--out", "c.safetensors", *options]) == 0
    out = capsys.readouterr().out
    assert "8 rows x 6 columns, step 150 of 150" in out
    assert "the best picture of one colour has" in out
    assert main(["render", "c.safetensors", "c2.png", "--size", "5x9"]) == 0
    assert read_image("c2.png").shape == (5, 9, 3)
    state = load_checkpoint("c.safetensors", backend=nnlab.backend("numpy"))
    assert state.model.config["layers"][1] == {"layer": "tanh"}
    assert state.model.config["layers"][-1] == {"layer": "sigmoid"}
    assert state.extra["picture"]["name"] == "c.png"


def press_ctrl_c_at(monkeypatch, step):
    """Ctrl-C at the first log from `step` on, through the time-lapse, which sees every log."""
    from nnlab.commands.lapse import TimeLapse

    original = TimeLapse.on_log

    def on_log(self, state):
        original(self, state)
        if state.step >= step:
            monkeypatch.setattr(TimeLapse, "on_log", original)
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(TimeLapse, "on_log", on_log)


def test_ctrl_c_and_resume_give_the_same_network(folder, monkeypatch, capsys):
    common = ["train", "i.png", "--strip", "strip.png", "--engine", "eager"]
    assert main([*common, "--out", "straight.safetensors", *SMALL]) == 0
    press_ctrl_c_at(monkeypatch, 120)
    assert main([*common, "--out", "part.safetensors", *SMALL]) == 130
    assert "add --resume to go on from part.safetensors" in capsys.readouterr().err
    host = nnlab.backend("numpy")
    assert load_checkpoint("part.safetensors", backend=host).step == 120
    assert main([*common, "--out", "part.safetensors", "--resume"]) == 0
    one, other = (load_checkpoint(f"{name}.safetensors", backend=host) for name in ("straight", "part"))
    for name, array in one.arrays.items():
        assert array.tobytes() == other.arrays[name].tobytes(), name
    assert one.log["loss"] == other.log["loss"]


def test_resume_goes_on_with_the_engine_of_before(folder, capsys):
    common = ["train", "i.png", "--out", "e.safetensors"]
    assert main([*common, "--hidden", "8", "--size", "20", "--steps", "5", "--engine", "eager"]) == 0
    capsys.readouterr()
    assert main([*common, "--resume", "--steps", "8", "--override", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["engine"] == "eager"


def test_resume_on_another_total_needs_a_word(folder, capsys):
    assert main(["train", "i.png", "--out", "a.safetensors", *SMALL[:4], "--steps", "20"]) == 0
    assert main(["train", "i.png", "--out", "a.safetensors", "--resume", "--steps", "30"]) == 1
    assert "override" in capsys.readouterr().err
    assert main(["train", "i.png", "--out", "a.safetensors", "--resume", "--steps", "30", "--override"]) == 0
    state = load_checkpoint("a.safetensors", backend=nnlab.backend("numpy"))
    assert (state.step, state.extra["overrides"][0]["from_steps"]) == (30, 20)


def test_time_lapse_and_strip(folder):
    options = [*SMALL[:4], "--steps", "60", "--time-lapse", "lapse.gif", "--strip", "strip.png", "--keep", "2"]
    assert main(["train", "i.png", "--out", "a.safetensors", *options]) == 0
    with Image.open("lapse.gif") as animation:
        assert animation.size == (24, 16)
        assert animation.n_frames > 10
        last = animation.n_frames - 1
    truth = to_unit(read_image("i.png"))
    quality = [psnr(truth, to_unit(read_image("lapse.gif", frame=i))[..., 0], data_range=1.0) for i in (0, last)]
    assert quality[1] > quality[0] + 3
    assert read_image("strip.png").shape == (16, 8 * 24 + 7 * 8)
    assert (folder / "a.1.safetensors").exists()


def test_a_time_lapse_has_as_many_frames_as_asked_for_and_lasts_as_long(folder):
    durations = {}
    for count in (6, 40):
        out = ["--out", f"{count}.safetensors", "--time-lapse", f"{count}.gif", "--frames", str(count)]
        assert main(["train", "i.png", *SMALL, *out, "--steps", "200"]) == 0
        with Image.open(f"{count}.gif") as animation:
            durations[count] = [_duration(animation, frame) for frame in range(animation.n_frames)]
    assert len(durations[6]) == 6
    assert len(durations[40]) > 25
    assert sum(durations[6]) == pytest.approx(sum(durations[40]), rel=0.15)


def _duration(animation, frame):
    animation.seek(frame)
    return animation.info["duration"]


def test_hard_edges_stay_in_range_when_the_picture_shrinks(folder, capsys):
    write_image("edge.png", np.kron(np.eye(4, dtype=np.uint8) * 255, np.ones((10, 10), np.uint8)))
    assert main(["train", "edge.png", "--out", "e.safetensors", "--size", "13", "--hidden", "8", "--steps", "2"]) == 0
    assert "13 rows x 13 columns" in capsys.readouterr().out


def test_a_run_below_the_constant_picture_is_flagged(folder, capsys):
    """D-21, on the command line."""
    options = [*SMALL[:4], "--steps", "100", "--rate", "20", "--json"]
    assert main(["train", "i.png", "--out", "a.safetensors", *options]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["beats_constant"] is False
    assert "ended no better than a picture of one colour" in err


def test_a_picture_of_one_colour_is_no_failure(folder, capsys):
    write_image("white.png", np.full((4, 4), 255, np.uint8))
    assert main(["train", "white.png", "--out", "w.safetensors", "--steps", "3", "--hidden", "4", "--json"]) == 0
    out, err = capsys.readouterr()
    result = json.loads(out)
    assert err == ""
    assert result["constant_psnr"] is None
    assert result["beats_constant"] is None


def test_a_folder_that_may_not_be_written_in(folder, capsys, monkeypatch):
    """As anyone but root would find it."""
    (folder / "closed").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: os.path.basename(path) != "closed")
    for argv in (["train", "i.png", "--out", "closed/a.safetensors"], ["encode", "i.png", "closed/a.csv"]):
        assert main(argv) == 1
        assert "closed: you may not write in this folder; choose another" in capsys.readouterr().err


def test_other_homes(folder, capsys):
    assert main(["train", "i.png", "--out", "s.safetensors", *SMALL[:4], "--steps", "5", "--backend", "sim"]) == 0
    assert "(eager on sim)" in capsys.readouterr().out
    assert main(["render", "s.safetensors", "s.png"]) == 0
    assert main(["render", "s.safetensors", "t.png", "--backend", "sim"]) == 0
    assert np.abs(read_image("s.png").astype(int) - read_image("t.png")).max() <= 1


def test_errors_are_one_line_and_leave_the_run_alone(folder, capsys):
    assert main(["train", "i.png", "--out", "a.safetensors", *SMALL[:4], "--steps", "5"]) == 0
    write_image("other.png", np.zeros((16, 24), np.uint8))
    good = (folder / "a.safetensors").read_bytes()
    (folder / "cut.safetensors").write_bytes(good[:-1])
    b = nnlab.backend("numpy")
    model, x = nn.mlp([2, 1], backend=b, rng=np.random.default_rng(0)), b.asarray(np.ones((3, 2)))
    save_checkpoint("line.safetensors", fit(model, x, x[:, :1], loss="mse", optimizer=SGD(), rate=0.1, steps=1).state)
    capsys.readouterr()
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder / "folder").mkdir()
    for argv, word in (
        (["train", "absent.png", "--out", "b.safetensors"], "no such file"),
        (["train", "i.png", "--out", "a.safetensors"], "holds a run already; go on with --resume"),
        (["train", "i.png", "--out", "b.safetensors", "--resume"], "leave out --resume"),
        (["train", "i.png", "--out", "a.safetensors", "--resume", "--hidden", "4"], "leave out --hidden"),
        (["train", "other.png", "--out", "a.safetensors", "--resume"], "is not the picture"),
        (["train", "i.png", "--out", "cut.safetensors", "--resume"], "cut.safetensors: this checkpoint is damaged"),
        (["train", "i.png", "--out", "line.safetensors", "--resume"], "no notes of a picture"),
        (["train", "i.png", "--out", "folder"], "folder: is a folder; name a file in it"),
        (["train", "folder", "--out", "b.safetensors"], "folder: is a folder; name a file in it"),
        (["train", "i.png", "--out", "a.safetensors", "--resume", "--steps", "9"], "add --override"),
        (["train", "i.png", "--out", "b.safetensors", "--time-lapse", "no/a.gif"], "make it first"),
        (["train", "i.png", "--out", "b.safetensors", "--strip", "no/a.png"], "make it first"),
        (["train", "i.png", "--out", "b.safetensors", "--engine", "fused"], "the fused engine runs on a GPU"),
        (["render", "folder", "a.png"], "folder: is a folder; name a file in it"),
        (["train", "i.png", "--out", "b.safetensors", "--engine", "eagre"], "Did you mean 'eager'?"),
        (["train", "i.png", "--out", "b.safetensors", "--backend", "nunpy"], "Did you mean 'numpy'?"),
        (["train", "i.png", "--out", "b.safetensors", "--time-lapse", "a.mp4"], ".gif, .png or .apng"),
        (["train", "i.png", "--out", "no/b.safetensors", *SMALL[:4], "--steps", "2"], "make it first"),
        (["render", "cut.safetensors", "a.png"], "damaged"),
        (["render", "line.safetensors", "a.png"], "no notes of a picture"),
        (["render", "i.png", "a.png"], "damaged (cut off, or altered since it was saved), or is no checkpoint"),
        (["render", "absent.safetensors", "a.png"], "no such file"),
        (["render", "a.safetensors", "a.jpg"], "PNG only"),
    ):
        assert main(argv) == 1, argv
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(f"nnlab {argv[0]}: ")
        assert err.count("\n") == 1, err
        assert word in err, (argv, err)
    (folder / "folder").rmdir()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("name", "values", "cure"),
    [
        ("--size", ("0", "x", "3x", "2x3x4", "5x0", "1.5"), "write 200"),
        ("--hidden", ("8,0", "8,,8", "a", "-3"), "128,128,128"),
        ("--steps", ("0", "-1", "1.5", "ten"), "whole number from 1"),
        ("--seed", ("-1", "x"), "whole number from 0"),
        ("--rate", ("0", "-1", "nan", "inf", "x"), "0.001"),
        ("--background", ("300", "x", "1,2", "-1"), "255,240,200"),
    ],
)
def test_options_that_make_no_sense(folder, capsys, name, values, cure):
    for value in values:
        with pytest.raises(SystemExit, match="2"):
            main(["train", "i.png", "--out", "a.safetensors", name, value])
        err = capsys.readouterr().err
        assert err.startswith(f"nnlab train: argument {name}: {value}"), err
        assert cure in err
        assert err.count("\n") == 1
