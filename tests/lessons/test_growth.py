"""How time and memory grow: the recording, the figure, and memory that follows the tile."""

from __future__ import annotations

import json

import pytest

from nnlab.cli import main
from nnlab.lessons import figures
from nnlab.lessons.recorded import growth, recording


def test_memory_follows_the_tile():
    """512 x 512 pixels through a 128 wide layer: one array of it alone would take 134 MB."""
    found = growth.epoch_elsewhere(512)
    assert found["data_bytes"] == 512 * 512 * 3 * 4
    assert found["bytes"] < 3 * found["data_bytes"] + 32 * 2**20
    assert found["peak_bytes"] > found["bytes"] > 0


def test_sixteen_million_rows_took_less_than_a_gigabyte_and_a_half():
    """As recorded; making it again takes half a minute and more."""
    large = recording("growth-cpu")["large"]
    assert large["side"] == 4096
    assert large["data_bytes"] < large["peak_bytes"] < 1.5e9


@pytest.mark.slow
def test_memory_of_a_million_rows():
    found = growth.epoch_elsewhere(1024)
    assert found["bytes"] < 3 * found["data_bytes"] + 32 * 2**20


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recordings")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(growth, "SIDES", (4, 20))
        patch.setattr(growth, "LARGE", 8)
        patch.setattr(growth, "SAMPLE_SECONDS", 0.01)
        assert main(["record", "growth-cpu", "--backend", "numpy", "--out", str(folder)]) == 0
    return json.loads((folder / "growth-cpu.json").read_text())


def test_it_is_recorded(made):
    assert made["weights"] == 2 * 64 + 64 * 64 + 2 * 64 * 128 + 64 * 32 + 2 * 32 * 32 + 32
    points = made["engines"]["tiled"]
    assert [point["rows"] for point in points] == [16, 400]
    assert all(point["seconds"] > 0 for point in points)
    assert made["large"]["side"] == 8


def test_the_figure_shows_every_engine_on_every_device(made):
    cannot = {
        "engines": {"fused": [{"rows": 9, "cannot": "too few rows"}, {"rows": 400, "seconds": 1e-3, "bytes": 3e6}]}
    }
    both = {"2 cores": made, "a card": made | cannot}
    figure = figures.growth(both)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["tiled, 2 cores", "fused, a card"]
    times = figure.axes[0].lines[1]
    assert list(times.get_xdata()) == [400]
    assert times.get_ydata()[0] == pytest.approx(1e-3 / 400 / made["weights"] * 1e12)
    words = figures.growth_words(both)
    assert "fused, a card: 1e+02 ps and 3 MB at 400 pixels" in words
    assert "tiled, 2 cores" in words
