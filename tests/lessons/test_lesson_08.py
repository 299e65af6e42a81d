"""Lesson 08: its exercises know right answers and the usual mistakes, and its widget tells what pools do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import nnlab
from nnlab.lessons import par


def best(sizes, nbytes):
    fitting = [i for i, size in enumerate(sizes) if size >= nbytes]
    return min(fitting, key=lambda i: sizes[i]) if fitting else None


def first(sizes, nbytes):
    return next((i for i, size in enumerate(sizes) if size >= nbytes), None)


CASES = [
    ("08.best_fit", best, "Right."),
    ("08.best_fit", first, "first that fits"),
    ("08.best_fit", lambda sizes, nbytes: min(size for size in sizes if size >= nbytes), "place"),
    ("08.best_fit", lambda sizes, nbytes: best(sizes, nbytes) or 0, "should be None"),
    ("08.best_fit", lambda sizes, nbytes: best(sizes, nbytes + 1), "exactly as large"),
    ("08.best_fit", lambda sizes, nbytes: 0, "yours gives 0"),
    ("08.rounding", lambda sizes: sum(-size % 512 for size in sizes), "Right."),
    ("08.rounding", lambda sizes: -sum(sizes) % 512, "each block by itself"),
    ("08.rounding", lambda sizes: sum(512 - size % 512 for size in sizes), "multiple of 512"),
    ("08.rounding", lambda sizes: sum(-(-size // 512) * 512 for size in sizes), "what was asked for"),
    ("08.rounding", lambda sizes: 1, "yours gives 1"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "answer", "word"), CASES)
def test_answers_are_told_apart(key, answer, word, judged):
    judged(key, answer, word)


@pytest.mark.parametrize("key", ["08.best_fit", "08.rounding"])
def test_an_empty_function_repeats_the_task(key, judged):
    judged(key, lambda *arguments: ..., "Still to do: Write ")


def test_a_step_that_makes_arrays_is_above_the_par(capsys):
    sim = nnlab.backend("sim")
    x = sim.asarray([1.0, 2.0])
    with sim.measure() as receipt:
        x + 1.0
    par(receipt, allocations=0, copies=0)
    assert "Above par in allocations." in capsys.readouterr().out


@pytest.fixture(scope="module")
def ui():
    pytest.importorskip("ipywidgets")
    from nnlab.lessons.widgets import Pools

    return Pools()


def test_the_goal_of_the_widget_can_be_reached_in_two_ways(ui):
    assert "<b>30</b>" in ui.update(pool="async, keeps nothing", size="64 KiB", wait="at every step")
    assert "<b>0</b>" in ui.update(pool="async, keeps nothing", size="64 KiB", wait="never")
    assert "<b>0</b>" in ui.update(pool="async, keeps 4 GiB", size="64 KiB", wait="at every step")
    assert "<b>80</b>" in ui.update(pool="none", size="64 KiB", wait="never")
    assert "<b>0</b>" in ui.update(pool="default", size="64 KiB", wait="at every step")
    assert [bar.get_height() for bar in ui.bars] == [3, *[0] * 19]


def test_the_driver_costs_more_the_larger_the_array(ui):
    def cost(pool, size):
        return ui.runs[pool, size, "never"].seconds

    assert cost("none", "16 MiB") > cost("none", "64 KiB") > cost("default", "64 KiB")
    assert cost("default", "4 KiB") == pytest.approx(cost("default", "64 KiB"), rel=0.05)


def test_the_table_of_the_lesson_is_the_recording():
    from nnlab.lessons.recorded import recording

    path = Path(__file__).resolve().parents[2] / "notebooks" / "08_memory_pools.ipynb"
    first = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
    for network, us in recording("allocation-h200")["step_us"].items():
        assert f"| {network} | {us['none']:,} | {us['default']:,} |" in first
