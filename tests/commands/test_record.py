"""`nnlab record`: recordings say how they were made, and come from the code that lessons show."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import nnlab
from nnlab.cli import main
from nnlab.lessons.recorded import cub, label, quality
from nnlab.training import constant, load_checkpoint


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
    assert len(record["loss"]) == 201
    assert record["made"]["card"] == "the host"
    assert "nnlab record cub-diary" in label(record)
    state = load_checkpoint(tmp_path / "cub-diary.safetensors", backend=nnlab.backend("numpy"))
    assert state.step == 200
    assert state.extra["cub"]["hidden"] == 4


def test_the_diary_network_has_the_diary_size_and_start():
    model = cub.build(cub.DIARY, nnlab.backend("numpy"))
    assert sum(value.size for value in model.parameters.values()) == 15_451
    assert (model.parameters["0.bias"] == 1).all()
    assert model.parameters["2.weight"].std() == pytest.approx(1, abs=0.05)
    assert cub.DIARY.schedule(0) == 0.01
    np.testing.assert_allclose(cub.coordinates(cub.DIARY, np.array([-1.0, 1.0])), [0, 1])


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
