"""The timeline and the staircase: what they draw, and what they say."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

import nnlab
from nnlab.backends import Receipt
from nnlab.lessons import figures
from nnlab.lessons.figures.timeline import LOOKS


@pytest.fixture
def receipt():
    b = nnlab.backend("sim")
    with b.measure() as receipt:
        x = b.asarray(np.ones(100))
        float((x * 2.0).sum())
        b.synchronize()
    return receipt


def bars(fig):
    """Rectangles drawn, by face colour and pattern."""
    found = {}
    for collection in fig.axes[0].collections:
        assert isinstance(collection, PolyCollection)
        if collection.get_paths():
            key = tuple(np.round(collection.get_facecolor()[0], 3)), collection.get_hatch()
            found[key] = found.get(key, 0) + len(collection.get_paths())
    return found


def test_every_event_is_a_bar_of_its_kind(receipt):
    drawn = bars(figures.timeline(receipt))
    kinds = {event.kind for event in receipt.events}
    assert kinds == {"allocate", "h2d", "launch", "kernel", "compile", "d2h", "wait"}
    assert sum(drawn.values()) == len(receipt.events)
    assert len(drawn) == len(kinds)


def test_kinds_differ_in_colour_and_in_pattern():
    assert len({look.colour for look in LOOKS.values()}) == len(LOOKS)
    assert len({look.hatch for look in LOOKS.values()}) == len(LOOKS)


def test_what_is_not_modelled_stands_under_a_modelled_timeline(receipt):
    fig = figures.timeline(receipt)
    assert "Not modelled: occupancy" in fig.get_supxlabel().replace("\n", " ")
    assert "modelled time" in fig.axes[0].get_xlabel()
    measured = Receipt(events=receipt.events, seconds=receipt.seconds, home="GPU 0")
    fig = figures.timeline(measured)
    assert fig.get_supxlabel() == ""
    assert "modelled" not in fig.axes[0].get_xlabel()


def test_streams_have_lanes_of_their_own():
    b = nnlab.backend("sim")
    stream = b.stream()
    with b.measure() as receipt:
        b.asarray([1.0])
        with stream:
            b.asarray([1.0])
    labels = [label.get_text() for label in figures.timeline(receipt).axes[0].get_yticklabels()]
    assert labels == ["host", "device,\nstream 0", "device,\nstream 1"]


def test_kernels_are_tied_to_their_launches(receipt):
    assert len(figures.timeline(receipt).axes[0].lines) == receipt.launches == 2


def test_thousands_of_bars_are_drawn_as_what_the_eye_can_tell_apart():
    b = nnlab.backend("sim")
    x = b.asarray([1.0])
    x + 1.0
    with b.measure() as receipt:
        for _ in range(5000):
            x + 1.0
    fig = figures.timeline(receipt)
    drawn = bars(fig)
    assert "too dense" in fig.axes[0].get_title(loc="left") + fig.axes[0].get_title()
    assert len(drawn) == 3
    assert all(500 <= count <= 2000 for count in drawn.values())


def test_a_part_of_the_time(receipt):
    half = receipt.seconds / 2
    ax = figures.timeline(receipt, start=0.0, end=half).axes[0]
    assert ax.get_title() == ""
    assert ax.get_xlim()[1] == pytest.approx(half / 1e-3)


def test_a_receipt_without_events_has_no_timeline(receipt):
    with pytest.raises(ValueError, match="no timeline"):
        figures.timeline(receipt - receipt)


def test_the_words_tell_who_waited(receipt):
    words = figures.timeline_words(receipt)
    assert "2 kernels and 2 copies" in words
    assert "float(), synchronize" in words


STAIRS = [
    figures.Stair("loop", predicted=8.0, recorded=7.9),
    figures.Stair("batch", predicted=3e-3, modelled=2e-3),
    figures.Stair("graph", live=45e-6, recorded=50e-6),
]


def test_the_staircase_draws_every_figure_and_names_its_kind():
    fig = figures.staircase(STAIRS)
    ax = fig.axes[0]
    labels = {line.get_label(): len(line.get_xdata()) for line in ax.lines if not line.get_label().startswith("_")}
    expected = {"predicted from the receipt": 2, "modelled": 1, "recorded on an H200": 2, "live, this machine": 1}
    assert labels == expected
    markers = [line.get_marker() for line in ax.lines[1:]]
    assert all(a != b for a, b in itertools.combinations(markers, 2))
    assert [text.get_text() for text in ax.texts] == ["7.9 s", "2 ms", "45 µs"]


def test_a_label_stands_clear_of_all_marks_of_its_row():
    ax = figures.staircase(STAIRS).axes[0]
    assert [text.xy for text in ax.texts] == [(8.0, 0), (3e-3, 1), (50e-6, 2)]


def test_the_staircase_in_words():
    words = figures.staircase_words(STAIRS)
    assert "loop: 7.9 s; batch: 2 ms; graph: 45 µs" in words
    assert "175,556 times faster" in words


def test_a_step_without_a_time_is_named():
    with pytest.raises(ValueError, match="'empty' has no time"):
        figures.staircase([figures.Stair("empty")])
    with pytest.raises(ValueError, match="at least one step"):
        figures.staircase([])
