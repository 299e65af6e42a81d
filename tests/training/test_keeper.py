"""The Checkpoint callback: what lies on the disk, and kill -9 at any moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import nnlab
from nnlab import nn
from nnlab.errors import DivergenceError
from nnlab.training import SGD, Adam, Checkpoint, fit, load_checkpoint, resume


def saved_steps(folder):
    host = nnlab.backend("numpy")
    return {path.name: load_checkpoint(path, backend=host).step for path in sorted(folder.iterdir())}


def run(b, path, *, callbacks=(), steps=50, rate=0.05, **keep):
    x = b.asarray(np.linspace(-1, 1, 12).reshape(-1, 1))
    model = nn.mlp([1, 4, 1], backend=b, rng=np.random.default_rng(0))
    keeper = Checkpoint(path, **keep)
    options = {"loss": "mse", "optimizer": SGD(), "rate": rate, "steps": steps, "log_every": 5}
    return fit(model, x, x, callbacks=[keeper, *callbacks], **options)


def test_every_and_keep(b, tmp_path):
    run(b, tmp_path / "a.safetensors", every=12, keep=3)  # logs at 5, 10, 15 ...: saved at 15, 25, 40, 50
    assert saved_steps(tmp_path) == {"a.1.safetensors": 40, "a.2.safetensors": 25, "a.safetensors": 50}


def test_one_file_unless_more_are_asked_for(b, tmp_path):
    run(b, tmp_path / "a.safetensors")
    assert saved_steps(tmp_path) == {"a.safetensors": 50}


def test_older_ones_are_kept_without_links_too(b, tmp_path, monkeypatch):
    def no_links(source, target):
        raise OSError("not supported")

    monkeypatch.setattr(os, "link", no_links)
    run(b, tmp_path / "a.safetensors", every=25, keep=2)
    assert saved_steps(tmp_path) == {"a.1.safetensors": 25, "a.safetensors": 50}


def test_ctrl_c_saves(b, tmp_path):
    class Press:
        def on_log(self, state):
            if state.step == 20:
                os.kill(os.getpid(), signal.SIGINT)

    history = run(b, tmp_path / "a.safetensors", every=1000, callbacks=[Press()])
    assert history.interrupted
    assert saved_steps(tmp_path) == {"a.safetensors": history.state.step}
    state = load_checkpoint(tmp_path / "a.safetensors", backend=b)
    x = b.asarray(np.linspace(-1, 1, 12).reshape(-1, 1))
    resume(state, x, x, callbacks=[Checkpoint(tmp_path / "a.safetensors", keep=2)])
    assert saved_steps(tmp_path)["a.safetensors"] == 50


def two_signals():
    signal.raise_signal(signal.SIGINT)
    signal.raise_signal(signal.SIGINT)


def out_of_memory():
    raise MemoryError


@pytest.mark.parametrize("engine", ["eager", "graph", "fused"])
@pytest.mark.parametrize(("break_off", "error"), [(two_signals, KeyboardInterrupt), (out_of_memory, MemoryError)])
def test_what_is_saved_of_a_broken_step_is_the_last_log(tmp_path, monkeypatch, engine, break_off, error):
    b = nnlab.backend("sim")
    x = b.asarray(np.linspace(-1, 1, 12).reshape(-1, 1))
    change, at, path = Adam._change, None, tmp_path / "a.safetensors"

    def breaking(self, name, *given):
        change(self, name, *given)
        if (self.step, name) == at:
            break_off()

    def train():
        model = nn.mlp([1, 4, 1], backend=b, rng=np.random.default_rng(0))
        options = {"loss": "mse", "rate": 0.05, "steps": 24, "log_every": 5, "engine": engine}
        return fit(model, x, x, optimizer=Adam(), callbacks=[Checkpoint(path, every=1000)], **options)

    monkeypatch.setattr(Adam, "_change", breaking)
    whole = train()
    for update, step in ((2, 0), (13, 10)):
        at = (update, "2.weight")
        with pytest.raises(error):
            train()
        at = None
        state = load_checkpoint(path, backend=b)
        assert state.step == state.optimizer.step == step
        again = resume(state, x, x)
        assert again.step == whole.step
        assert again.loss == whole.loss
        for name, value in whole.state.arrays.items():
            np.testing.assert_array_equal(b.to_host(again.state.arrays[name]), b.to_host(value), err_msg=name)


def test_divergence_saves_the_last_good_state(b, tmp_path):
    with pytest.raises(DivergenceError):
        run(b, tmp_path / "a.safetensors", rate=1e4, every=1000)
    state = load_checkpoint(tmp_path / "a.safetensors", backend=b)
    assert all(np.isfinite(b.to_host(array)).all() for array in state.arrays.values())


def test_resuming_a_finished_run_changes_no_file(b, tmp_path):
    run(b, tmp_path / "a.safetensors", keep=2, every=25)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    state = load_checkpoint(tmp_path / "a.safetensors", backend=b)
    x = b.asarray(np.linspace(-1, 1, 12).reshape(-1, 1))
    resume(state, x, x, callbacks=[Checkpoint(tmp_path / "a.safetensors", keep=2, every=25)])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_every_and_keep_are_counts(tmp_path):
    for wrong in ({"keep": 0}, {"every": 0}):
        with pytest.raises(ValueError, match="from 1"):
            Checkpoint(tmp_path / "a.safetensors", **wrong)


VICTIM = """
import sys
from pathlib import Path
import numpy as np
import nnlab
from nnlab import nn
from nnlab.training import Adam, Checkpoint, cosine, fit, load_checkpoint, resume

path, steps = Path(sys.argv[1]), int(sys.argv[2])
b = nnlab.backend("numpy")
x = b.asarray(np.random.default_rng(1).uniform(-1, 1, (64, 2)))
y = b.asarray(np.sin(3 * b.to_host(x)[:, :1]))
callbacks = [Checkpoint(path, every=1, keep=3)]
print("ready", flush=True)
if path.exists():
    resume(load_checkpoint(path, backend=b), x, y, callbacks=callbacks)
else:
    model = nn.mlp([2, 8, 1], backend=b, rng=np.random.default_rng(0))
    fit(model, x, y, loss="mse", optimizer=Adam(), rate=cosine(0.01, steps), steps=steps, batch_size=16,
        rng=np.random.default_rng(2), log_every=1, callbacks=callbacks)
"""


@pytest.mark.parametrize("kills", [10, pytest.param(100, marks=pytest.mark.slow)])
def test_kill_9_at_any_moment(tmp_path, kills):
    """A process that saves at every step is killed again and again: each time the newest file loads, and the run,
    resumed to its end, is the run that nobody killed."""
    path, host, steps = tmp_path / "a.safetensors", nnlab.backend("numpy"), 60 * kills
    moments = np.random.default_rng().uniform(0.005, 0.15, kills)
    reached = []
    for moment in moments:
        with subprocess.Popen(
            [sys.executable, "-c", VICTIM, path, str(steps)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout.readline() == "ready\n"
            time.sleep(moment)
            process.kill()
        if path.exists():
            reached.append(load_checkpoint(path, backend=host).step)
    assert reached == sorted(reached), "a kill threw the run back"
    assert reached[-1] > 0
    subprocess.run([sys.executable, "-c", VICTIM, path, str(steps)], check=True, capture_output=True)
    straight = tmp_path / "straight.safetensors"
    subprocess.run([sys.executable, "-c", VICTIM, straight, str(steps)], check=True, capture_output=True)
    one, other = (load_checkpoint(name, backend=host) for name in (path, straight))
    assert one.step == other.step == steps
    for name, array in one.arrays.items():
        assert array.tobytes() == other.arrays[name].tobytes(), name
    assert one.log["loss"] == other.log["loss"]
    assert not list(tmp_path.glob(".*")), "a killed writer's file was left behind"
