"""The exercises of lesson 12 know right answers and the usual mistakes, and its widget tells the truth."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("ipywidgets")

from nnlab.images import constant_image, psnr
from nnlab.lessons.widgets import Codec
from nnlab.lessons.widgets.codec import shrunk


def over(colour, alpha, background):
    share = alpha / 255.0
    return np.round(share * colour + (1 - share) * background).astype(np.uint8)


def in_bytes(colour, alpha, background):
    return (alpha * colour + (255 - alpha) * background) // 255


def decibels(truth, estimate, span):
    error = np.mean((np.asarray(truth, float) - np.asarray(estimate, float)) ** 2)
    return np.inf if error == 0 else 10 * np.log10(span**2 / error)


def on_bytes(truth, estimate, low, high):
    error = np.mean((truth - estimate) ** 2)
    return np.inf if error == 0 else 10 * np.log10((high - low) ** 2 / error)


CASES = [
    ("12.pixel", lambda x, n: min(int((x + 1) / 2 * n), n - 1), "Right."),
    ("12.pixel", lambda x, n: int((x + 1) / 2 * n), "The right edge"),
    ("12.pixel", lambda x, n: round((x + 1) / 2 * (n - 1)), "end points"),
    ("12.pixel", lambda x, n: n - 1, "lies in number 0; yours is 3"),
    ("12.over", over, "Right."),
    ("12.over", lambda c, a, g: np.floor(a / 255.0 * c + (1 - a / 255.0) * g).astype(np.uint8), "cuts the fraction"),
    ("12.over", lambda c, a, g: c, "unchanged"),
    ("12.over", lambda c, a, g: a / 255.0 * c + (1 - a / 255.0) * g, "should be bytes"),
    ("12.over", lambda c, a, g: over(c, a, g)[:, 0], "has the shape (40,)"),
    ("12.over", in_bytes, "still fit"),
    ("12.psnr", lambda t, e, low, high: decibels(t, e, high - low), "Right."),
    ("12.psnr", lambda t, e, low, high: decibels(t, e, high), "R is high − low"),
    ("12.psnr", lambda t, e, low, high: decibels(t, e, np.ptp(t) or high - low), "largest"),
    ("12.psnr", on_bytes, "Bytes minus bytes"),
    ("12.psnr", lambda t, e, low, high: decibels(t, e, high - low) / 2, "R is squared"),
    ("12.psnr", lambda t, e, low, high: min(decibels(t, e, high - low), 99), "infinite"),
    ("12.psnr", lambda t, e, low, high: 7, "yours is 7.00"),
]


@pytest.mark.parametrize(("key", "answer", "word"), CASES)
def test_answers_are_told_apart(key, answer, word, judged):
    judged(key, answer, word)


@pytest.mark.parametrize("key", ["12.pixel", "12.over", "12.psnr"])
def test_an_empty_function_repeats_the_task(key, judged):
    judged(key, lambda *arguments: ..., "Still to do: Write ")


def test_the_widget_counts_bytes_and_measures_what_it_shows():
    rng = np.random.default_rng(0)
    picture = rng.random((30, 30))
    ui = Codec({"noise": picture})
    words = ui.show(picture="noise", method="nearest", size=20, bits=3)
    shown = ui.shown.get_array()
    assert "150 bytes" in words
    assert f"PSNR {psnr(picture, shown, data_range=1.0):.2f} dB" in words
    assert f"one grey for all: {psnr(picture, constant_image(picture), data_range=1.0):.2f} dB" in words
    assert len(np.unique(np.asarray(shown))) <= 8
    assert "20 dB reached" not in words
    assert "13 bytes" in ui.show(picture="noise", method="nearest", size=10, bits=1)


def test_the_widget_says_when_the_goal_is_reached():
    flat = np.full((200, 200), 0.5)
    flat[:, 100:] = 0.4
    ui = Codec({"flat": flat})
    assert "20 dB reached" in ui.show(picture="flat", method="nearest", size=200, bits=8)
    assert "20 dB reached" not in ui.show(picture="flat", method="nearest", size=200, bits=1)


def test_levels_are_the_nearest_ones():
    picture = np.random.default_rng(1).random((10, 10))
    for bits in (1, 3, 8):
        off = np.abs(shrunk(picture, 10, bits, "nearest") - picture).max()
        assert off <= 0.5 / (2**bits - 1) + 1e-6
