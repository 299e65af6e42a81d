"""`nnlab record`: recordings say how they were made, and come from the code that lessons show."""

from __future__ import annotations

import dataclasses
import json
import signal
from types import SimpleNamespace

import numpy as np
import pytest

import nnlab
from nnlab import nn
from nnlab.cli import main
from nnlab.images import psnr, render
from nnlab.lessons.recorded import cub, growth, label, port, quality, recording, sweep, thumbnails
from nnlab.training import constant, fit, load_checkpoint


def test_names_are_listed_and_suggested(capsys):
    assert main(["record"]) == 0
    assert "siren-quality" in capsys.readouterr().out
    assert main(["record", "siren-qualty", "--backend", "numpy"]) == 1
    assert "Did you mean 'siren-quality'" in capsys.readouterr().err


def test_a_cub_is_recorded_with_its_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setitem(cub.RUNS, "diary", dataclasses.replace(cub.DIARY, hidden=4, steps=200))
    monkeypatch.setattr(cub, "SIZE", 20)
    folders = ["--out", str(tmp_path), "--checkpoints", str(tmp_path)]
    assert main(["record", "cub-diary", "--backend", "numpy", "--engine", "eager", *folders]) == 0
    record = json.loads((tmp_path / "cub-diary.json").read_text())
    assert record["steps"] == list(range(5, 201, 5))
    assert record["trained_db"][-1] > 3
    assert list(record["frames"]) == ["5", "10", "25", "50", "75", "100", "150", "200"]
    assert thumbnails.decode(record["frames"]["200"]).shape == (120, 120)
    assert len(record["loss"]) == 201
    assert record["made"]["card"] == "the host"
    assert "nnlab record cub-diary" in label(record)
    state = load_checkpoint(tmp_path / "cub-diary.safetensors", backend=nnlab.backend("numpy"))
    assert state.step == 200
    assert state.extra["cub"]["hidden"] == 4


def interrupted_fit(moment):
    """`fit`, with Ctrl-C at on_start or at the first on_log."""
    ctrl_c = SimpleNamespace(**{moment: lambda state: signal.raise_signal(signal.SIGINT)})
    return lambda *args, callbacks=(), **options: fit(*args, callbacks=[*callbacks, ctrl_c], **options)


@pytest.mark.parametrize(
    ("name", "module"), [("cub-pyramid64", cub), ("siren-sweep", sweep), ("siren-quality", quality)]
)
def test_a_stopped_run_is_not_recorded(tmp_path, monkeypatch, capsys, name, module):
    monkeypatch.setitem(cub.RUNS, "pyramid64", cub.Run(4, 200))
    monkeypatch.setattr(sweep, "WIDTHS", (8,))
    monkeypatch.setattr(quality, "RUNS", [quality.Run("tanh", constant(1e-3), 101)])
    monkeypatch.setattr(quality, "WIDTH", 8)
    monkeypatch.setattr(quality, "MARKS", ())
    monkeypatch.setattr(module, "fit", interrupted_fit("on_log"))
    earlier = [tmp_path / f"{name}.json", tmp_path / f"{name}.safetensors"]
    for file in earlier:
        file.write_text("an earlier run")
    folders = ["--out", str(tmp_path), "--checkpoints", str(tmp_path)]
    assert main(["record", name, "--backend", "numpy", "--engine", "tiled", *folders]) == 130
    assert "nnlab record: stopped" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == earlier
    assert all(file.read_text() == "an earlier run" for file in earlier)


def test_a_stopped_epoch_is_not_measured(monkeypatch):
    monkeypatch.setattr(growth, "fit", interrupted_fit("on_start"))
    with pytest.raises(KeyboardInterrupt):
        growth.epoch(8)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--engine", "tyled"], "unknown engine 'tyled'. Did you mean 'tiled'?"),
        (["--out", "a-file"], "a-file: is a file; name a folder"),
        (["--out", "a-file/below"], "a-file: is a file; name a folder"),
        (["--out", "a-folder"], "port-email.json: is a folder; name a file in it"),
        (["--checkpoints", "a-file"], "a-file: is a file; name a folder"),
    ],
)
def test_what_cannot_be_done_is_said_before_any_work(tmp_path, monkeypatch, capsys, options, complaint):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a-file").write_text("something")
    (tmp_path / "a-folder" / "port-email.json").mkdir(parents=True)
    monkeypatch.setattr(port, "email", lambda *_: pytest.fail("work was begun"))
    assert main(["record", "port-email", "--backend", "numpy", *options]) == 1
    assert complaint in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a-file", "a-folder"]


def test_the_command_names_the_engine_where_it_is_used(tmp_path, monkeypatch):
    monkeypatch.setattr(port, "email", lambda b: {})
    monkeypatch.setattr(sweep, "record", lambda b, engine: {})
    commands = []
    for name in ("port-email", "siren-sweep"):
        folder = tmp_path / "new" / "folder"
        assert main(["record", name, "--backend", "numpy", "--engine", "tiled", "--out", str(folder)]) == 0
        commands.append(json.loads((folder / f"{name}.json").read_text())["made"]["command"])
    assert commands == [
        "nnlab record port-email --backend numpy",
        "nnlab record siren-sweep --backend numpy --engine tiled",
    ]


def test_the_diary_network_has_the_diary_size_and_start():
    model = cub.build(cub.DIARY, nnlab.backend("numpy"))
    assert sum(value.size for value in model.parameters.values()) == 15_451
    assert (model.parameters["0.bias"] == 1).all()
    assert model.parameters["2.weight"].std() == pytest.approx(1, abs=0.05)
    assert cub.DIARY.schedule(0) == 0.01
    np.testing.assert_allclose(cub.coordinates(cub.DIARY, np.array([-1.0, 1.0])), [0, 1])


@pytest.mark.parametrize("name", ["cub-pyramid64", "cub-diary"])
def test_a_painter_draws_what_was_recorded(name):
    """The one ends in a sigmoid; the other in logits, with coordinates from 0 to 1."""
    host = nnlab.backend("numpy")
    drawn = render(cub.painter(name, host), 200, 200, backend=host)
    assert psnr(cub.cub(200), drawn, data_range=1.0) == pytest.approx(recording(name)["trained_db"][-1], abs=0.05)


def test_the_cub_is_ink_on_paper():
    drawing = cub.cub(200)
    assert drawing.shape == (200, 200)
    assert (drawing > 0.5).mean() == pytest.approx(0.098, abs=0.005)
    assert drawing[0].max() == 0


@pytest.mark.parametrize("network", ["siren", "relu with octaves"])
def test_a_photograph_is_painted(monkeypatch, network):
    monkeypatch.setattr(quality, "WIDTH", 8)
    monkeypatch.setattr(quality, "MARKS", (100,))
    monkeypatch.setattr(quality, "DEPTH", 1)
    result = quality.paint(quality.Run(network, constant(1e-3), 100), nnlab.backend("numpy"), "tiled")
    assert result["steps"] == [100]
    assert result["trained_db"][0] > 8
    assert result["sizes"][0] == (2 if network == "siren" else 34)
    assert len(result["loss"]) == 2


def test_the_sweep_is_recorded(tmp_path, monkeypatch):
    for name, value in {"OMEGAS": (1, 30), "WIDTHS": (8,), "SIZE": 16, "STEPS": 50}.items():
        monkeypatch.setattr(sweep, name, value)
    assert main(["record", "siren-sweep", "--backend", "numpy", "--engine", "tiled", "--out", str(tmp_path)]) == 0
    record = json.loads((tmp_path / "siren-sweep.json").read_text())
    slow, fast = record["runs"]
    assert (slow["omega_0"], fast["omega_0"], fast["width"]) == (1, 30, 8)
    assert fast["steps"] == [25, 50]
    assert len(fast["render_db"]) == 2
    assert slow["trained_db"][-1] > slow["trained_db"][0] + 0.1
    assert 10 < record["constant_db"] < 20
    assert len(fast["spreads"]) == 3
    assert fast["spreads"][0] == pytest.approx(30 * slow["spreads"][0], rel=0.01)
    assert thumbnails.decode(fast["picture"]).shape == (160, 160)


def test_spreads_are_those_of_the_case():
    """D-16: near 7.1 in the first layer, near 1 in the others."""
    b = nnlab.backend("numpy", dtype="float64")
    model = nn.siren([2, 256, 256, 256, 1], backend=b, rng=np.random.default_rng(0))
    x = np.random.default_rng(1).uniform(-1, 1, (4000, 2))
    first, *others = sweep.spreads(model, x)
    assert first == pytest.approx(7.07, abs=0.5)
    assert all(0.85 < spread < 1.1 for spread in others)


def test_a_small_picture_comes_back():
    shades = np.linspace(0, 1, 16).reshape(4, 4)
    np.testing.assert_allclose(thumbnails.decode(thumbnails.encode(shades)), shades, atol=0.001)
    np.testing.assert_array_equal(thumbnails.decode(thumbnails.encode(np.array([[-9.0, 9.0]]))), [[0, 1]])
