"""Measuring a simulated GPU finds the figures that it was made of."""

from __future__ import annotations

import pytest

import nnlab
from nnlab.backends import calibrate
from nnlab.backends.sim.device import load_device
from nnlab.cli import main
from nnlab.errors import UnknownName


@pytest.fixture
def short(monkeypatch):
    """Fewer runs: modelled time repeats exactly."""
    monkeypatch.setattr(calibrate, "REPEATS", 1)


def test_calibration_recovers_the_device(short, tmp_path):
    b = nnlab.backend("sim", device="h200", memory=2**31)
    tables = calibrate.calibrate(b, base="h200", product=256)
    path = tmp_path / "mine.toml"
    path.write_text(calibrate.device_file(tables, title="mine", source="a test"), encoding="utf-8")
    found, truth = load_device(str(path)), load_device("h200")
    assert found.measured
    assert found.name == "mine"
    taken_over = {"queue", "floor", "cache_bytes", "block_threads", "staged_bytes"}
    for name in ("host", "copy", "kernel"):
        for key, value in getattr(truth, name).items():
            if key not in taken_over:
                assert getattr(found, name)[key] == pytest.approx(value, rel=0.05), f"{name}.{key}"
    assert found.allocate["default"] == pytest.approx(truth.allocate["default"], rel=0.05)
    mine = nnlab.backend("sim", device=str(path))
    assert mine.home.endswith("(mine)")
    assert float((mine.asarray([1.0]) + 1.0)[0]) == 2.0


def test_every_device_file_has_the_same_figures():
    h200, laptop = load_device("h200"), load_device("laptop")
    for table in ("host", "compile", "allocate", "copy", "kernel"):
        assert set(getattr(h200, table)) == set(getattr(laptop, table))
    with pytest.raises(UnknownName, match=r"'h100'.*h200.*laptop"):
        load_device("h100")


def test_the_command_wants_a_toml_file(capsys):
    assert main(["record", "--device", "mine.json", "--backend", "sim"]) == 1
    assert "ends in .toml, mine.json does not" in capsys.readouterr().err
