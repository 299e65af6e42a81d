"""`nnlab bench`: what it measures is right, what it leaves out is named, what it writes is complete."""

from __future__ import annotations

import json
import os
import re

import numpy as np
import pytest

import nnlab
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


class Tires(Wrong):
    """Does as it is told so many times, then raises."""

    turns = 3  # the comparison with float64, and two samples

    def train(self, steps):
        self.turns -= 1
        if self.turns < 0:
            raise MemoryError("the card is full")
        super().train(steps)


class Shy(Wrong):
    """Trains, and raises when it is to predict."""

    def forward(self, passes):
        raise OSError("no kernel image")


class Lost(Wrong):
    """Its weights stop being numbers."""

    def weights(self):
        return [np.full_like(array, np.nan) for array in super().weights()]


BROKEN = {"choosy": Choosy, "broken": broken, "tires": Tires, "shy": Shy}


@pytest.fixture(scope="module")
def record():
    everyone = ours.field("cpu") | {"wrong": Wrong, "lost": Lost} | BROKEN
    return measure.measure(SMALL, "cpu", everyone, 3, lambda text: None)


def test_every_speed_has_its_distance_from_float64(record):
    found = record["contestants"]
    assert set(found) == {"nnlab eager", "nnlab tiled", "wrong", "lost"}
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
    assert record["left_out"] == {
        "choosy": "only round networks",
        "broken": "RuntimeError: no such device",
        "tires": "MemoryError: the card is full",
        "shy": "OSError: no kernel image",
    }
    assert "left out: only round networks" in report.table({"jobs": {"small": record}})


def test_a_distance_that_is_no_number_is_still_json(record):
    assert record["contestants"]["lost"]["distance"] is None
    json.dumps(record, allow_nan=False)
    assert re.search(r"  lost .* nan$", report.table({"jobs": {"small": record}}), re.MULTILINE)
    diverged = report.table({"jobs": {"small": record | {"numpy_float32_distance": None}}})
    assert "NumPy float32 is off by nan" in diverged.splitlines()[0]


def test_slow_steps_keep_their_columns_apart():
    found = {"train": [0.140042, 0.147005, 0.153968], "forward": [0.04], "distance": 1e-6}
    job = {"weights": 1, "rows": 1, "numpy_float32_distance": 1e-6, "contestants": {"slow": found}, "left_out": {}}
    line = report.table({"jobs": {"small": job}}).splitlines()[2]
    assert line.split() == ["slow", "147,005.00", "143,523.50-150,486.50", "40,000.00", "1.0e-06"]


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


def test_after_ctrl_c_the_finished_jobs_are_written(tmp_path, monkeypatch, capsys):
    out, chart = tmp_path / "bench.json", tmp_path / "bench.png"
    real = measure.measure

    def stopped_at_the_second(job, *rest):
        if job.name == "dispatch1":
            raise KeyboardInterrupt
        return real(job, *rest)

    monkeypatch.setattr(measure, "measure", stopped_at_the_second)
    arguments = [
        "bench",
        "--device",
        "cpu",
        "--job",
        "estate",
        "--job",
        "dispatch1",
        "--only",
        "nnlab",
        "--rounds",
        "1",
    ]
    assert main([*arguments, "--json", str(out), "--chart", str(chart)]) == 130
    assert list(json.loads(out.read_text(encoding="utf-8"))["jobs"]) == ["estate"]
    assert chart.read_bytes().startswith(b"\x89PNG")


def test_a_job_named_twice_is_measured_once(monkeypatch, record):
    measured = []
    monkeypatch.setattr(measure, "measure", lambda job, *rest: measured.append(job.name) or record)
    assert main(["bench", "--device", "cpu", "--job", "estate", "--job", "simba", "--job", "estate"]) == 0
    assert measured == ["estate", "simba"]


@pytest.mark.parametrize("option", ["--json", "--chart"])
def test_a_write_that_fails_leaves_the_earlier_file(tmp_path, monkeypatch, capsys, record, option):
    def full(*_):
        raise OSError("the disk is full")

    earlier = tmp_path / "earlier.png"
    earlier.write_text("an earlier run")
    monkeypatch.setattr(measure, "measure", lambda *_: record)
    monkeypatch.setattr(os, "replace", full)
    assert main(["bench", "--device", "cpu", "--job", "estate", option, str(earlier)]) == 1
    assert "the disk is full" in capsys.readouterr().err
    assert earlier.read_text() == "an earlier run"
    assert list(tmp_path.iterdir()) == [earlier]


def test_where_nobody_could_be_measured_the_job_is_not_done(tmp_path, monkeypatch, capsys):
    chart = tmp_path / "bench.png"
    monkeypatch.setattr(measure, "fields", lambda device: ({"broken": broken}, []))
    assert main(["bench", "--device", "cpu", "--job", "estate", "--chart", str(chart)]) == 1
    out, err = capsys.readouterr()
    assert "left out: RuntimeError: no such device" in out
    assert "nobody could be measured" in err
    assert not chart.exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--job", "estat"], "estate"),
        (["--rounds", "0"], "1 or more"),
        (["--only", "tiled", "--only", "eagre"], "unknown competitor 'eagre'. Did you mean 'nnlab eager'?"),
        (["--chart", "a.xyz"], "a.xyz: no chart can be drawn in such a file; end the name in .png"),
        (["--chart", "a"], "a: no chart can be drawn in such a file; end the name in .png"),
        (["--json", "a.png", "--chart", "./a.png"], "a.png: is named by --json and by --chart"),
    ],
)
def test_bad_arguments_are_told_before_anything_is_measured(tmp_path, monkeypatch, capsys, arguments, complaint):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(measure, "measure", lambda *_: pytest.fail("measured"))
    assert main(["bench", "--device", "cpu", *arguments]) == 1
    assert complaint in capsys.readouterr().err


def test_without_a_card_the_cpu_is_advised(monkeypatch, capsys):
    monkeypatch.setattr(nnlab.backends, "gpu_available", lambda: (False, "There is no NVIDIA driver."))
    assert main(["bench", "--device", "gpu"]) == 1
    assert "There is no NVIDIA driver. nnlab bench --device cpu times" in capsys.readouterr().err


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
