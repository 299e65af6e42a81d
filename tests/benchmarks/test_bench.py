"""`nnlab bench`: what it measures is right, what it leaves out is named, what it writes is complete."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks.steps import measure, ours, report
from benchmarks.steps.jobs import JOBS, Job
from nnlab.cli import main

SMALL = Job("small", (3, 5, 2), 20, "tanh", check_steps=30)


class Wrong(ours.Ours):
    """Trains as it should, with a tenth too high a rate."""

    def __init__(self, job):
        super().__init__(job, "eager", ours.nnlab.backend("numpy"))
        self.session.state.schedule = ours.constant(1.1 * job.rate)


class Choosy(ours.Ours):
    def __init__(self, job):
        raise NotImplementedError("only round networks")


def broken(job):
    raise RuntimeError("no such device")


@pytest.fixture(scope="module")
def record():
    everyone = ours.field("cpu") | {"wrong": Wrong, "choosy": Choosy, "broken": broken}
    return measure.measure(SMALL, "cpu", everyone, 3, lambda text: None)


def test_every_speed_has_its_distance_from_float64(record):
    found = record["contestants"]
    assert set(found) == {"nnlab eager", "nnlab tiled", "wrong"}
    for name in ("nnlab eager", "nnlab tiled"):
        assert 0 < found[name]["distance"] < 1e-4
    assert found["nnlab eager"]["distance"] == record["numpy_float32_distance"]
    assert found["wrong"]["distance"] > 0.02


def test_everyone_has_as_many_turns(record):
    for found in record["contestants"].values():
        for what in ("train", "forward"):
            assert len(found[what]) == 3
            assert min(found[what]) > 0


def test_what_cannot_run_is_named(record):
    assert record["left_out"] == {"choosy": "only round networks", "broken": "RuntimeError: no such device"}
    assert "left out: only round networks" in report.table({"jobs": {"small": record}})


def test_jobs_start_alike_and_with_the_sizes_they_name():
    for job in JOBS.values():
        assert sum(layer["weight"].size for layer in job.start()) == job.weights
        assert len(job.activations) == len(job.widths) - 1
    first, second = (JOBS["estate"].start() for _ in range(2))
    np.testing.assert_array_equal(first[0]["weight"], second[0]["weight"])
    assert (JOBS["dispatch1"].weights, JOBS["siren"].weights) == (234_752, 197_376)


def test_the_command_writes_json_and_chart(tmp_path, capsys):
    out, chart = tmp_path / "bench.json", tmp_path / "bench.png"
    arguments = ["bench", "--device", "cpu", "--job", "estate", "--only", "nnlab eager", "--rounds", "1"]
    assert main([*arguments, "--json", str(out), "--chart", str(chart)]) == 0
    assert "nnlab eager" in capsys.readouterr().out
    written = json.loads(out.read_text(encoding="utf-8"))
    assert {"date", "host", "python", "versions"} <= set(written["made"])
    assert list(written["jobs"]["estate"]["contestants"]) == ["nnlab eager"]
    assert chart.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "complaint"), [(["--job", "estat"], "estate"), (["--job", "estate", "--rounds", "0"], "1 or more")]
)
def test_bad_arguments(capsys, arguments, complaint):
    assert main(["bench", "--device", "cpu", *arguments]) == 1
    assert complaint in capsys.readouterr().err


def test_standings_compare_within_a_precision():
    times = {"nnlab fused": 2e-6, "nnlab fused-tf32": 1e-6, "JAX loop": 8e-6, "JAX loop, TF32": 3e-6, "eager": 9e-6}
    job = {
        "contestants": {who: {"train": [seconds] * 3} for who, seconds in times.items()},
        "floors": {"float32": 1e-6, "TF32": 0.2e-6},
    }
    assert report.standings(job) == [
        "nnlab fused, float32: 4.00 times as fast as JAX loop; 50.0% of what the card multiplies at most",
        "nnlab fused-tf32, TF32: 3.00 times as fast as JAX loop, TF32; 20.0% of what the card multiplies at most",
    ]
    assert JOBS["simba"].operations == pytest.approx(5.9e9, rel=0.01)
    assert JOBS["siren"].operations == pytest.approx(77.6e9, rel=0.01)
