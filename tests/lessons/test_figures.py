"""Figures: small pictures, the same bytes each time, with their content in words."""

from __future__ import annotations

import io

import numpy as np
import pytest

pytest.importorskip("IPython")
from matplotlib import pyplot as plt
from PIL import Image

import nnlab
from nnlab.lessons import figures, start


@pytest.fixture(autouse=True)
def nothing_left_open():
    yield
    plt.close("all")


def lines():
    start()
    fig, ax = plt.subplots(figsize=(6, 3))
    ax.plot([0, 1, 2], [2, 1, 3], label="a")
    ax.legend()
    return fig


def opened(png: bytes) -> Image.Image:
    return Image.open(io.BytesIO(png))


def test_show_gives_the_picture_its_words_and_closes_it(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw, metadata=None: shown.append((data, metadata)))
    figures.show(lines(), alt="  Falls & \n rises. ")
    (picture, metadata), (words, _) = shown
    assert picture["text/plain"] == "<figure 480x240>"
    assert opened(picture["image/png"]).size == (480, 240)
    assert metadata["image/png"]["alt"] == "Falls & rises."
    assert "Falls &amp; rises." in words["text/html"]
    assert words["text/plain"] == "In words: Falls & rises."
    assert plt.get_fignums() == []


def test_a_figure_without_words_is_refused():
    with pytest.raises(ValueError, match="alt"):
        figures.show(lines(), alt=" ")


def test_the_same_figure_gives_the_same_bytes_without_a_version_mark():
    first, second = figures.png(lines()), figures.png(lines())
    assert first == second
    assert "Software" not in opened(first).info


def test_the_size_is_the_figures_and_the_palette_small():
    picture = opened(figures.png(lines()))
    assert picture.size == (480, 240)
    assert picture.mode == "P"
    assert len(figures.png(lines())) < len(figures.png(lines(), colours=None)) / 2


def test_the_palette_keeps_the_colours_of_lines():
    true, reduced = (np.asarray(opened(figures.png(lines(), colours=c)).convert("RGB"), int) for c in (None, 64))
    assert np.abs(true - reduced).max() < 48
    blue = (true == [0, 0x72, 0xB2]).all(axis=2)
    assert blue.sum() > 200
    assert np.abs(reduced[blue] - [0, 0x72, 0xB2]).max() < 8


def test_loss_curves_draw_what_they_are_given():
    fig = figures.loss_curves({"a": ([0, 1], [2.0, 1.0]), "b": ([0, 1], [3.0, 2.0])}, floor=("best", 0.5))
    ax = fig.axes[0]
    assert [line.get_label() for line in ax.lines] == ["a", "b", "best"]
    assert ax.get_yscale() == "log"
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [2, 1])


def test_the_surface_is_the_function_with_x_rightwards_and_y_upwards():
    x = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    fig = figures.decision_surface(lambda points: points[:, :1] * 0.5 + 0.25, x, np.array([[0], [0], [1], [1]]))
    values = fig.axes[0].images[0].get_array()
    assert values[0, 0] == values[-1, 0] < values[0, -1]
    fig2 = figures.decision_surface(lambda points: points[:, 1:] * 0.5 + 0.25, x, np.array([[0], [1], [0], [1]]))
    values = fig2.axes[0].images[0].get_array()
    assert values[0, 0] == values[0, -1] < values[-1, 0]
    assert fig2.axes[0].images[0].origin == "lower"


def test_pictures_in_a_row_keep_their_shapes():
    fig = figures.image_row({"grey": np.zeros((4, 6)), "colour": np.ones((4, 4, 3))})
    assert [ax.get_title() for ax in fig.axes] == ["grey", "colour"]
    assert [ax.images[0].get_array().shape for ax in fig.axes] == [(4, 6), (4, 4, 3)]


def test_dots_are_all_results_in_rising_order_with_their_median():
    fig = figures.dots(
        {"a": np.array([3.0, 1.0, 2.0]), "b": np.array([5.0])}, levels={"line": [4.0, 6.0]}, ylabel="error"
    )
    ax = fig.axes[0]
    assert ax.lines[0].get_ydata().tolist() == [1.0, 2.0, 3.0]
    assert set(ax.lines[1].get_ydata()) == {2.0}
    assert [line.get_ydata()[0] for line in ax.lines[-2:]] == [4.0, 6.0]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a", "b"]
    plt.close(fig)


def test_bands_show_the_median_run_between_percentiles():
    runs = np.outer([1.0, 2.0], np.arange(11))
    fig = figures.bands([10, 20], {"a": runs}, floor=("line", 3.0), ylabel="error")
    assert fig.axes[0].lines[0].get_ydata().tolist() == [5.0, 10.0]
    assert fig.axes[0].lines[1].get_ydata()[0] == 3.0
    edges = fig.axes[0].collections[0].get_paths()[0].vertices
    assert {tuple(point) for point in edges} >= {(10.0, 1.0), (10.0, 9.0), (20.0, 2.0), (20.0, 18.0)}
    plt.close(fig)


def test_dots_stand_under_their_roofs():
    dots = [figures.Dot("a", 2.0, 1e12, 8e12), figures.Dot("b", 100.0, 4e12, 8e12)]
    fig = figures.roofline(dots, memory=1e12, roofs={"fast": 8e12})
    ax = fig.axes[0]
    slope, flat = ax.lines[0], ax.lines[1]
    assert slope.get_ydata() == pytest.approx(1e12 * np.array(slope.get_xdata()))
    assert (slope.get_xdata()[-1], slope.get_ydata()[-1]) == (8.0, 8e12)  # the corner
    assert (flat.get_xdata()[0], flat.get_ydata()[0]) == (8.0, 8e12)
    assert [text.get_text() for text in ax.texts] == ["1", "2"]
    assert [text.xy for text in ax.texts] == [(2.0, 1e12), (100.0, 4e12)]
    words = figures.roofline_words(dots, memory=1e12)
    assert words == "a: 2 operations a byte, 50% of its roof; b: 100 operations a byte, 50% of its roof."
    with pytest.raises(ValueError, match="at least one dot"):
        figures.roofline([], memory=1e12, roofs={"fast": 8e12})


@pytest.mark.parametrize(
    ("arrays", "draw"),
    [
        (2, lambda a: figures.loss_curves({"a": (a[0], a[0])})),
        (1, lambda a: figures.dots({"a": a[0]}, ylabel="y")),
        (2, lambda a: figures.bands(a[0], {"a": a}, ylabel="y")),
        (1, lambda a: figures.image_row({"a": a})),
    ],
)
def test_device_arrays_are_drawn_after_one_copy_each(arrays, draw):
    """D-02 (a)."""
    b = nnlab.backend("sim")
    values = b.asarray(np.arange(9.0).reshape(3, 3) / 9)
    with b.measure() as receipt:
        draw(values)
    assert receipt.d2h_copies == arrays
