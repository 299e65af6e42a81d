"""Lesson 16: all ways take the same step, costs are those of the simulated GPU's receipts, exercises know mistakes."""

from __future__ import annotations

import ast
import json
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ipywidgets")

import nnlab
from nnlab.backends.sim.device import load_device
from nnlab.engines import engine
from nnlab.lessons import climb, climb_costs, cub_step
from nnlab.lessons.exercises.lesson_16 import PREDICTED, least
from nnlab.lessons.recorded import recording, staircase
from nnlab.lessons.widgets import Climb

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "16_staircase.ipynb"
SMALL = (2, 8, 6, 1)


def functions_of_the_lesson():
    """`pieces` and `step`, as the notebook has them."""
    found = {"fuse": nnlab.tensor.fuse}
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and source.startswith(("def pieces(", "def step(")):
            assert all(isinstance(node, ast.FunctionDef) for node in ast.parse(source).body)
            exec(source, found)
    return found


def problem(rows, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (rows, 2)).astype(np.float32), rng.uniform(0, 1, (rows, 1)).astype(np.float32)


def trained(climber, steps):
    climber.run(steps)
    return np.concatenate([climber.home.to_host(part).ravel() for layer in climber.net for part in layer])


@pytest.mark.parametrize("way", climb.WAYS, ids=lambda way: way.label)
def test_every_way_takes_the_same_steps(way):
    x, y = problem(4096)
    b = nnlab.backend("sim")
    exact = trained(climb.ready(climb.HOST[0], b, x, y, SMALL), 3)
    start = trained(climb.ready(climb.HOST[0], b, x, y, SMALL), 0)
    found = trained(climb.ready(way, b, x, y, SMALL), 3)
    assert np.linalg.norm(found - exact) < 1e-4 * np.linalg.norm(exact - start)


def test_the_lessons_step_is_the_packages(b):
    x_host, y_host = problem(50)
    x, y, ones = b.asarray(x_host), b.asarray(y_host), b.xp.ones((1, 50), dtype=b.dtype)
    lesson = functions_of_the_lesson()
    mine, theirs = cub_step.layers(b, SMALL), cub_step.layers(b, SMALL)
    loss = lesson["step"](b, lesson["pieces"](b), x, y, mine, ones)
    again = climb.step(b, climb.pieces(b, fused=True), x, y, theirs, ones)
    assert float(loss) == float(again)
    for one, other in zip(mine, theirs, strict=True):
        for part, same in zip(one, other, strict=True):
            np.testing.assert_array_equal(b.to_host(part), b.to_host(same))


@pytest.mark.parametrize(("sizes", "rows"), [(SMALL, 300), ((2, 16, 16, 32, 16, 8, 8, 8, 1), 2500)])
@pytest.mark.parametrize("way", climb.DEVICE[2:5], ids=lambda way: way.label)
def test_costs_are_those_of_the_receipt(way, sizes, rows):
    """Kernel by kernel the same names and seconds, and the same launches, arrays and host time in all."""
    b = nnlab.backend("sim")
    x_host, y_host = problem(rows)
    x, y, net = b.asarray(x_host), b.asarray(y_host), cub_step.layers(b, sizes)
    ones = b.xp.ones((1, rows), dtype="float32")
    if way.fused:
        once = partial(climb.step, b, climb.pieces(b, fused=True), x, y, net, ones)
    else:
        sums = (lambda home, g: home.matmul(ones, g)) if way.sums else cub_step.sum_rows
        once = partial(cub_step.step, b, x, y, net, sums)
    once()
    with b.measure() as receipt:
        once()
    with b.capture() as graph:
        once()
    found = climb_costs.kernels(load_device("h200"), sizes, rows, sums=way.sums, fused=way.fused)
    assert [name.removeprefix("true_") for name, _ in graph.nodes] == [kernel.name for kernel in found]
    assert [seconds for _, seconds in graph.nodes] == pytest.approx([kernel.seconds for kernel in found])
    assert receipt.launches == len(found)
    assert receipt.pool_hits + receipt.allocations == sum(len(kernel.makes) for kernel in found)
    cost = climb_costs.cost(way, "h200", sizes, rows)
    assert receipt.seconds == pytest.approx(max(cost.host, cost.device), rel=0.06)


def test_a_graph_and_a_pool_cost_what_the_simulated_gpu_says():
    x, y = problem(2500)
    b = nnlab.backend("sim")
    for way in (climb.DEVICE[0], climb.DEVICE[1], climb.DEVICE[5]):
        climber = climb.ready(way, b, x, y)
        climber.run(1)
        measured = staircase.measure(climber)
        cost = climb_costs.cost(way, "h200", cub_step.SIZES, 2500)
        assert measured["launches"] == cost.launches
        assert measured["allocations"] == cost.allocations
        assert measured["d2h_copies"] == int(way.read)
        assert measured["us"][0] == pytest.approx(1e6 * cost.seconds, rel=0.15)


@pytest.mark.parametrize("way", climb.DEVICE[-2:], ids=lambda way: way.label)
def test_the_fused_engines_cost_is_that_of_its_own_plan(way):
    x, y = problem(4096)
    b = nnlab.backend("sim")
    climber = climb.ready(way, b, x, y)
    climber.run(1)
    measured, cost = staircase.measure(climber), climb_costs.cost(way, "h200", cub_step.SIZES, 4096)
    assert measured["launches"] == cost.launches
    assert engine(way.engine).name == way.engine
    assert cost.nbytes < climb_costs.cost(climb.DEVICE[2], "h200", cub_step.SIZES, 4096).nbytes / 4


def test_each_bound_rules_somewhere():
    costs = {way.label: climb_costs.cost(way, "h200", cub_step.SIZES, 40_000) for way in climb.DEVICE}
    assert costs["elementwise work fused"].rules == "launches"
    assert costs["the step as a graph"].rules == "memory"
    assert costs["fused engine, 3xTF32"].rules == "arithmetic"
    assert climb_costs.cost(climb.DEVICE[-1], "laptop", cub_step.SIZES, 40_000) is None


def test_the_recording_has_every_way_and_says_how_it_was_made():
    record = recording("staircase-h200")
    assert list(record["ways"]) == [way.label for way in climb.WAYS]
    assert record["made"]["card"] == "NVIDIA H200"
    assert "nnlab record staircase-h200" in record["made"]["command"]
    for way in climb.WAYS:
        found = record["ways"][way.label]
        assert len(found["us"]) >= 3
        assert found["distance"] < (2e-2 if way.engine == "fused-tf32" else 1e-4)
        assert found["psnr_db"] == pytest.approx(record["ways"]["NumPy, float64"]["psnr_db"], abs=0.01)


def test_the_recorder_runs_on_a_host(monkeypatch):
    """The same function, without a card: the ways of the host, each held against float64."""
    monkeypatch.setattr(staircase, "CHECKED", 2)
    monkeypatch.setattr(staircase.cub_step, "data", lambda size: problem(4096))
    record = staircase.record(nnlab.backend("numpy"))
    assert list(record["ways"]) == [way.label for way in climb.HOST]
    assert record["ways"]["NumPy, float64"]["distance"] == 0
    assert 0 < record["ways"]["NumPy, float32"]["distance"] < 1e-4
    assert all(time > 0 for way in record["ways"].values() for time in way["us"])


def intensity(rows, inner, columns):
    return 2 * rows * inner * columns / (4 * (rows * inner + inner * columns + rows * columns))


def next_step(home, work, x, y, net, slopes, ones, everything, all_slopes, rate=climb.RATE):
    outputs = [x]
    for i, (w, bias) in enumerate(net):
        activate = work.bias_tanh if i < len(net) - 1 else work.bias_sigmoid
        outputs.append(activate(home.matmul(outputs[-1], w), bias))
    squares, gradient = work.output_error(outputs[-1], y, 2 / len(x))
    for i in reversed(range(len(net))):
        slope, bias_slope = slopes[i]
        home.matmul(outputs[i], gradient, transpose_a=True, out=slope)
        home.matmul(ones, gradient, out=bias_slope)
        if i:
            gradient = work.tanh_back(home.matmul(gradient, net[i][0], transpose_b=True), outputs[i])
    work.descend(everything, all_slopes, rate)
    return squares.mean()


RIGHT = {name: max(least(name).values()) for name in PREDICTED}
CASES = [
    ("16.predict", RIGHT, "Right."),
    ("16.predict", RIGHT | {"the step as a graph": 6.9}, "6.9 µs is the bound of launches, but another one is larger"),
    ("16.predict", RIGHT | {"fused engine, 3xTF32": 15}, "the largest bound is that of arithmetic, and it is not 15"),
    ("16.predict", {"the step as a graph": 184}, "'elementwise work fused' is missing"),
    ("16.predict", dict.fromkeys(PREDICTED, ...), "Still to do"),
    ("16.intensity", intensity, "Right."),
    ("16.intensity", lambda *shape: intensity(*shape) / 2, "are two operations"),
    ("16.intensity", lambda *shape: 4 * intensity(*shape), "has four bytes"),
    ("16.intensity", lambda rows, inner, columns: inner / 4, "it should be"),
    ("16.intensity", lambda *shape: ..., "Still to do"),
    ("16.next_step", next_step, "Right."),
    ("16.next_step", partial(next_step, rate=0.1), "In step 2 the loss should be"),
    ("16.next_step", lambda home, *rest: float(next_step(home, *rest)), "stay on the device"),
    ("16.next_step", lambda *arguments: ..., "Still to do"),
]


@pytest.mark.parametrize(("key", "answer", "word"), CASES)
def test_answers_are_told_apart(key, answer, word, judged):
    judged(key, answer, word)


def test_the_next_step_saves_fifteen_launches():
    b = nnlab.backend("sim")
    x_host, y_host = problem(100)
    x, y, ones = b.asarray(x_host), b.asarray(y_host), b.xp.ones((1, 100), dtype="float32")
    (net, everything), (slopes, all_slopes) = climb.flat_layers(b), climb.flat_layers(b, zero=True)
    arguments = (b, climb.pieces(b, fused=True), x, y, net, slopes, ones, everything, all_slopes)
    next_step(*arguments)
    with b.measure() as receipt:
        next_step(*arguments)
    assert (receipt.launches, receipt.allocations) == (50, 0)


@pytest.fixture(scope="module")
def ui():
    return Climb()


def test_the_widget_says_who_wins_and_why(ui):
    assert "fused engine, TF32 is the fastest" in ui.show(width=64, side=200, card="H200")
    assert "the step as a graph is the fastest" in ui.show(width=128, side=200, card="H200")
    assert "NumPy beats sums as products" in ui.show(width=8, side=16, card="H200")
    assert "does not fit its tile kernel" in ui.show(width=64, side=200, card="RTX 4060 Laptop")
    assert re.search(r"the step as a graph [\d,.]+ µs;", ui.show(width=64, side=16, card="H200"))  # none explains it
    assert re.search(r"the step as a graph [\d,.]+ µs \(memory\)", ui.show(width=64, side=200, card="H200"))


def test_the_widgets_marks_stand_at_the_bounds(ui):
    ui.show(width=64, side=200, card="H200")
    graph = ui.costs[64, 200, "H200"][2]
    place = 2
    for name, line in ui.marks.items():
        assert line.get_xdata()[place] == pytest.approx(1e6 * graph.bounds[name])
    bar = ui.bars[1 + place]
    assert bar.get_x() + bar.get_width() == pytest.approx(1e6 * graph.seconds)
