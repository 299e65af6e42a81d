"""Checkpoints: nothing is lost, nothing damaged is taken, and a resumed run is the same run. D-22 to D-25."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import nnlab
from nnlab import files, nn
from nnlab.engines import Tiled
from nnlab.errors import CheckpointDamaged, CheckpointMismatch
from nnlab.nn import losses
from nnlab.optim import Schedule
from nnlab.training import SGD, Adam, Momentum, cosine, fit, load_checkpoint, resume, save_checkpoint

OPTIMIZERS = [SGD, Momentum, Adam]


def data(b, rows=23):
    x = np.linspace(-1, 1, 2 * rows).reshape(rows, 2)
    return b.asarray(x), b.asarray(np.sin(3 * x[:, :1]) + x[:, 1:])


def network(b, seed=0):
    return nn.mlp([2, 8, 1], backend=b, rng=np.random.default_rng(seed))


class StopAt:
    """Ctrl-C, as the run sees it, at a chosen log."""

    def __init__(self, step):
        self.step = step

    def on_log(self, state):
        if state.step >= self.step:
            os.kill(os.getpid(), signal.SIGINT)


def run(b, optimizer, *, steps=40, stop=None, batch_size=5, **changes):
    options = {
        "loss": "mse",
        "rate": cosine(0.05, steps),
        "steps": steps,
        "batch_size": batch_size,
        "rng": np.random.default_rng(7),
        "log_every": 4,
        "callbacks": [] if stop is None else [StopAt(stop)],
    } | changes
    return fit(network(b), *data(b), optimizer=optimizer, **options)


def numbers(state):
    return {name: state.model.backend.to_host(array).copy() for name, array in state.arrays.items()}


def assert_same_run(one, other):
    """Every number, to the bit; seconds are the clock's and differ."""
    assert one.step == other.step
    assert one.optimizer.step == other.optimizer.step
    mine, theirs = numbers(one), numbers(other)
    assert mine.keys() == theirs.keys()
    for name, array in mine.items():
        assert array.tobytes() == theirs[name].tobytes(), name
    for column in ("step", "loss", "rate"):
        assert one.log[column] == other.log[column]


@pytest.mark.parametrize("batch_size", [None, 5])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("stop", [4, 20, 36])
def test_a_resumed_run_is_the_same_run(b, tmp_path, optimizer, batch_size, stop):
    """Four rows of five to an epoch, so the stops lie inside epochs too."""
    straight = run(b, optimizer(), batch_size=batch_size).state
    part = run(b, optimizer(), batch_size=batch_size, stop=stop)
    assert part.interrupted
    assert part.state.step == stop
    save_checkpoint(tmp_path / "a.safetensors", part.state)
    loaded = load_checkpoint(tmp_path / "a.safetensors", backend=b)
    resume(loaded, *data(b))
    assert_same_run(straight, loaded)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_resume_between_two_logs(b, tmp_path, optimizer):
    """Saved at step 5 of logs every 4: through a state that was advanced by hand."""
    straight = run(b, optimizer()).state
    state = run(b, optimizer(), stop=4).state
    session = nnlab.engines.engine("eager").prepare(state, *data(b))
    with np.errstate(all="ignore"):
        first = float(b.to_host(session.advance(1))[0])
    state.log["step"].append(4)
    state.log["loss"].append(first)
    state.log["rate"].append(state.schedule(4))
    state.log["seconds"].append(0.0)
    save_checkpoint(tmp_path / "a.safetensors", state)
    loaded = load_checkpoint(tmp_path / "a.safetensors", backend=b)
    assert loaded.step == 5
    resume(loaded, *data(b))
    assert_same_run(straight, loaded)


def test_an_engine_resumes_with_its_settings(tmp_path):
    """The tile decides in which order sums are taken, and so the last bits."""
    b, tiled = nnlab.backend("numpy"), Tiled(tile=3, threads=2)
    straight = run(b, Adam(), batch_size=None, engine=tiled).state
    part = run(b, Adam(), batch_size=None, engine=tiled, stop=20)
    save_checkpoint(tmp_path / "a.safetensors", part.state)
    loaded = load_checkpoint(tmp_path / "a.safetensors", backend=b)
    resume(loaded, *data(b))
    assert_same_run(straight, loaded)
    assert loaded.extra == {"engine_settings": {"tile": 3, "threads": 2}}
    resume(part.state, *data(b), engine="tiled")
    assert part.state.extra == {}, "the settings of another engine"


def test_the_rates_go_on_where_they_were(host64, tmp_path):
    """D-22."""
    rates = [0.1, 0.0975528258, 0.0904508497, 0.0793892626, 0.0654508497, 0.05]
    rates += [0.0345491503, 0.0206107374, 0.0095491503, 0.0024471742, 0]
    straight = run(host64, SGD(), steps=10, rate=cosine(0.1, 10), log_every=1)
    assert straight.rate == pytest.approx(rates, abs=5e-11)
    part = run(host64, SGD(), steps=10, rate=cosine(0.1, 10), log_every=1, stop=5)
    save_checkpoint(tmp_path / "a.safetensors", part.state)
    loaded = load_checkpoint(tmp_path / "a.safetensors", backend=host64)
    assert loaded.schedule(loaded.step) == pytest.approx(0.05)
    assert resume(loaded, *data(host64)).rate == straight.rate
    assert_same_run(straight.state, loaded)


@pytest.mark.parametrize(("optimizer", "end"), [(Momentum, 0.3446674486), (Adam, -0.2711540941)])
def test_what_the_optimiser_remembers_survives(host64, tmp_path, optimizer, end):
    """D-23: w^2 / 2 from w = 1, as the mse of a network without bias at x = sqrt(1/2), y = 0."""
    model = nn.mlp([1, 1], bias=False, backend=host64, rng=np.random.default_rng(0))
    model.parameters["0.weight"][...] = 1.0
    x, y = np.array([[math.sqrt(0.5)]]), np.zeros((1, 1))
    part = fit(model, x, y, loss="mse", optimizer=optimizer(), rate=0.1, steps=20, log_every=10, callbacks=[StopAt(10)])
    assert part.state.step == 10
    save_checkpoint(tmp_path / "a.safetensors", part.state)
    loaded = load_checkpoint(tmp_path / "a.safetensors", backend=host64)
    resume(loaded, x, y)
    assert loaded.model.parameters["0.weight"][0, 0] == pytest.approx(end, abs=1e-9)


def test_all_of_the_state_comes_back(host64, tmp_path):
    state = run(host64, Adam(beta1=0.8), stop=8).state
    state.extra["picture"] = {"name": 'a "cub" "checksum":"' + "0" * 64, "range": [-1.0, 1.0]}
    save_checkpoint(tmp_path / "a.safetensors", state)
    loaded = load_checkpoint(tmp_path / "a.safetensors", backend=host64)
    for name in (
        "step",
        "steps",
        "log_every",
        "batch_size",
        "batch_seed",
        "engine",
        "log",
        "extra",
        "schedule",
        "loss",
    ):
        assert getattr(loaded, name) == getattr(state, name), name
    assert loaded.model.config == state.model.config
    assert loaded.optimizer.config == state.optimizer.config
    save_checkpoint(tmp_path / "b.safetensors", loaded)
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()


def test_a_failed_save_leaves_the_old_checkpoint(host64, tmp_path, monkeypatch):
    """D-24."""
    path = tmp_path / "a.safetensors"
    state = run(host64, Adam(), stop=8).state
    save_checkpoint(path, state)
    before = path.read_bytes()

    def full(handle):
        raise OSError("no space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    resume(state, *data(host64))
    with pytest.raises(OSError, match="no space"):
        save_checkpoint(path, state)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert load_checkpoint(path, backend=host64).step == 8
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.safetensors"]


def test_damage_is_noticed_wherever_it_is(host64, tmp_path):
    """D-24: cut to any size, or one bit altered in any byte."""
    path = tmp_path / "a.safetensors"
    model = nn.mlp([1, 1], backend=host64, rng=np.random.default_rng(0))
    x = np.ones((2, 1))
    save_checkpoint(path, fit(model, x, x, loss="mse", optimizer=SGD(), rate=0.1, steps=1).state)
    good = path.read_bytes()
    cut = [good[:size] for size in (0, 1, 8, 100, len(good) // 2, len(good) - 1)]
    longer = [good + b"\0", good + good]
    altered = [good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :] for at in range(len(good))]
    for bad in cut + longer + altered:
        path.write_bytes(bad)
        with pytest.raises(CheckpointDamaged, match=r"a\.safetensors: "):
            load_checkpoint(path, backend=host64)
    path.write_bytes(good)
    assert load_checkpoint(path, backend=host64).step == 1


def test_what_is_no_checkpoint(host64, tmp_path):
    with pytest.raises(FileNotFoundError):
        load_checkpoint(tmp_path / "absent.safetensors", backend=host64)
    save_file({"w": np.zeros(3)}, tmp_path / "other.safetensors")
    with pytest.raises(CheckpointMismatch, match="not a checkpoint of nnlab"):
        load_checkpoint(tmp_path / "other.safetensors", backend=host64)
    (tmp_path / "text.safetensors").write_text("hello")
    with pytest.raises(CheckpointDamaged, match=r"text\.safetensors"):
        load_checkpoint(tmp_path / "text.safetensors", backend=host64)


def test_a_newer_format_is_refused(host64, tmp_path, monkeypatch):
    monkeypatch.setattr("nnlab.training.checkpoint.FORMAT", 2)
    save_checkpoint(tmp_path / "a.safetensors", run(host64, SGD(), stop=4).state)
    monkeypatch.undo()
    with pytest.raises(CheckpointMismatch, match="format 2"):
        load_checkpoint(tmp_path / "a.safetensors", backend=host64)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays: arrays.pop("0.bias"), r"lacks \['0.bias'\]"),
        (lambda arrays: arrays.update(extra=np.zeros(2)), r"has \['extra'\] more"),
        (lambda arrays: arrays.update({"0.bias": np.zeros(9)}), r"0\.bias is float64 \(9,\).*\(8,\)"),
        (lambda arrays: arrays.update({"0.bias": np.zeros(8, np.int64)}), r"0\.bias is int64"),
        (lambda arrays: arrays.pop("log.loss"), "log.loss"),
    ],
)
def test_loading_is_strict(host64, tmp_path, monkeypatch, change, message):
    """A whole file with other arrays than its own description needs."""
    from nnlab.training import checkpoint

    serialise = checkpoint.serialise

    def changed(arrays, metadata):
        change(arrays)
        return serialise(arrays, metadata)

    monkeypatch.setattr(checkpoint, "serialise", changed)
    save_checkpoint(tmp_path / "a.safetensors", run(host64, SGD(), stop=4).state)
    with pytest.raises(CheckpointMismatch, match=message):
        load_checkpoint(tmp_path / "a.safetensors", backend=host64)


def test_what_a_file_cannot_describe_is_refused_when_saving(host64, tmp_path):
    class Own(Schedule):
        config = {"schedule": "own"}  # noqa: RUF012

        def __call__(self, k):
            return 0.1

    def own_loss(prediction, target):
        return losses.mse(prediction, target)

    def note(state):
        state.extra["picture"] = np.float32(1)

    for spoil, message in (
        (lambda state: setattr(state, "schedule", Own()), "schedule 'own'"),
        (lambda state: setattr(state, "loss", own_loss), "own_loss"),
        (note, "state.extra must be plain JSON"),
    ):
        state = run(host64, SGD(), stop=4).state
        spoil(state)
        with pytest.raises(ValueError, match=message):
            save_checkpoint(tmp_path / "a.safetensors", state)
    assert list(tmp_path.iterdir()) == []


def test_another_precision_is_refused_by_name(host64, tmp_path):
    """D-25, last part."""
    save_checkpoint(tmp_path / "a.safetensors", run(host64, Adam(), stop=4).state)
    with pytest.raises(CheckpointMismatch, match=r'holds float64.*float32.*dtype="float64".*astype\("float32"\)'):
        load_checkpoint(tmp_path / "a.safetensors", backend=nnlab.backend("numpy"))


def test_saved_on_a_device_and_opened_where_there_is_none(tmp_path):
    """D-25: no device type in the file, and no CuPy needed to read it."""
    b = nnlab.backend("sim")
    state = run(b, Adam(), stop=20).state
    path = tmp_path / "a.safetensors"
    save_checkpoint(path, state)
    assert not any(word in path.read_bytes().lower() for word in (b"sim", b"cupy", b"h200"))
    x, y = data(b)
    kinds = {name: array.dtype for name, array in load_file(path).items() if not name.startswith("log.")}
    assert set(kinds.values()) == {np.dtype(np.float32)}
    assert len(kinds) == 3 * 4  # weights and biases of two layers, and two moments of each
    expected = b.to_host(state.model(x)).tolist()
    code = (
        "import sys, json; sys.modules['cupy'] = None\n"
        "import nnlab, numpy as np; from nnlab.training import load_checkpoint, resume\n"
        "b = nnlab.backend('numpy'); x, y = (np.array(v, np.float32) for v in json.load(sys.stdin))\n"
        f"s = load_checkpoint({str(path)!r}, backend=b); p = s.model(x); m = s.optimizer.arrays\n"
        "assert p.dtype == np.float32 and all(type(a) is np.ndarray for a in s.arrays.values())\n"
        "resume(s, x, y); print(json.dumps([p.tolist(), sorted(m), s.step]))"
    )
    given = json.dumps([b.to_host(x).tolist(), b.to_host(y).tolist()])
    answer = subprocess.run([sys.executable, "-c", code], input=given, capture_output=True, text=True, check=True)
    predicted, memories, step = json.loads(answer.stdout)
    np.testing.assert_allclose(predicted, expected, atol=1e-6)
    assert memories == sorted(state.optimizer.arrays)
    assert step == 40


def test_overriding_the_total_is_recorded(host64, tmp_path):
    state = run(host64, SGD(), stop=20).state
    with pytest.raises(CheckpointMismatch):
        resume(state, *data(host64), steps=60)
    resume(state, *data(host64), steps=60, override=True)
    save_checkpoint(tmp_path / "a.safetensors", state)
    loaded = load_checkpoint(tmp_path / "a.safetensors", backend=host64)
    assert loaded.extra["overrides"] == [{"at_step": 20, "from_steps": 40, "to_steps": 60}]
