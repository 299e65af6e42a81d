"""fit and resume: right answers, logs, refusals, divergence, interruption."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest

from nnlab import nn, training
from nnlab.datasets import StandardScaler, load_real_estate, load_xor
from nnlab.engines import engine
from nnlab.errors import CheckpointMismatch, DivergenceError, ShapeError, UnknownName
from nnlab.nn import losses
from nnlab.training import SGD, Adam, Momentum, cosine, fit, resume


def line(b, rows=20):
    x = np.linspace(-1, 1, rows).reshape(-1, 1)
    return b.asarray(x), b.asarray(3 * x + 1)


def small(b, seed=0, **options):
    return nn.mlp([1, 8, 1], backend=b, rng=np.random.default_rng(seed), **options)


def run(b, model, x, y, **changes):
    options = {"loss": losses.mse, "optimizer": SGD(), "rate": 0.1, "steps": 20}
    return fit(model, x, y, **(options | changes))


def test_reaches_least_squares_on_the_house_prices(host64):
    data = load_real_estate()
    sx, sy = StandardScaler().fit(data.x_train), StandardScaler().fit(data.y_train)
    model = nn.mlp([6, 1], backend=host64, rng=np.random.default_rng(0))
    run(host64, model, sx.transform(data.x_train), sy.transform(data.y_train), steps=1000)
    error = sy.inverse_transform(model(sx.transform(data.x_test))) - data.y_test
    assert (error**2).mean() == pytest.approx(59.6779, abs=1e-3)


def test_xor_is_learned_from_every_seed(host64):
    """D-10."""
    data = load_xor()
    for seed in range(20):
        model = nn.mlp([2, 4, 1], backend=host64, rng=np.random.default_rng(seed))
        history = run(host64, model, data.x_train, data.y_train, loss="bce_with_logits", rate=0.5, steps=2000)
        assert history.loss[-1] <= 0.05
        np.testing.assert_array_equal(np.round(nn.sigmoid(model(data.x_train))).ravel(), [0, 1, 1, 0])


def test_two_sigmoid_units_sometimes_stall(host64):
    """D-10, the contrast."""
    data, ends = load_xor(), []
    for seed in range(20):
        model = nn.mlp([2, 2, 1], activation="sigmoid", backend=host64, rng=np.random.default_rng(seed))
        ends.append(
            run(host64, model, data.x_train, data.y_train, loss="bce_with_logits", rate=0.5, steps=2000).loss[-1]
        )
    assert sum(end > 0.3 for end in ends) >= 3


def test_unscaled_features_diverge_at_a_known_step(host64):
    """D-13, in both precisions; the model is back at the last log, and scaling cures it."""
    x = np.linspace(0, 100, 51).reshape(-1, 1)
    y = 5 * x + 3
    for b, step in ((host64, 83), (host64.astype("float32"), 9)):
        model = nn.mlp([1, 1], backend=b, rng=np.random.default_rng(0))
        model.parameters["0.weight"][...] = 0
        with pytest.raises(DivergenceError, match=rf"step {step};.*last finite loss.*standardise") as caught:
            run(b, model, b.asarray(x), b.asarray(y), rate=0.01, steps=200)
        assert caught.value.step == step
        assert np.isfinite(caught.value.last_loss)
        assert np.isfinite(model.parameters["0.weight"]).all()
    scaler = StandardScaler().fit(x)
    model = nn.mlp([1, 1], backend=host64, rng=np.random.default_rng(0))
    run(host64, model, scaler.transform(x), y, rate=0.1, steps=200)
    slope = model.parameters["0.weight"][0, 0] / scaler.scale[0]
    assert slope == pytest.approx(5, abs=1e-9)
    assert model.parameters["0.bias"][0] - slope * scaler.mean[0] == pytest.approx(3, abs=1e-9)


def test_first_losses_of_the_unscaled_run(host64):
    x = np.linspace(0, 100, 51).reshape(-1, 1)
    model = nn.mlp([1, 1], backend=host64, rng=np.random.default_rng(0))
    model.parameters["0.weight"][...] = 0
    history = run(host64, model, x, 5 * x + 3, rate=0.01, steps=3, log_every=1)
    assert history.loss[:3] == pytest.approx([85675.67, 3.7714e8, 1.6602e12], rel=1e-4)


def test_divergence_returns_to_the_last_log(b):
    x, y = line(b)
    model = small(b)
    optimizer = Momentum()
    seen = []

    class Watch:
        def on_log(self, state):
            seen.append({name: b.to_host(value).copy() for name, value in state.arrays.items()})

    with pytest.raises(DivergenceError) as caught:
        run(
            b,
            model,
            x,
            b.asarray(b.to_host(y) * 1e15),
            optimizer=optimizer,
            rate=5.0,
            steps=500,
            log_every=2,
            callbacks=[Watch()],
        )
    assert optimizer.step == caught.value.step // 2 * 2
    for name, value in model.parameters.items():
        np.testing.assert_array_equal(b.to_host(value), seen[-1][name])


def test_history(b):
    x, y = line(b)
    model = small(b)
    start = float(b.to_host(losses.mse(model(x), y)[0]))
    history = run(b, model, x, y, rate=cosine(0.1, 25), steps=25, log_every=10)
    assert history.step == [0, 10, 20, 25]
    assert history.loss[0] == pytest.approx(start)
    assert history.loss[-1] == pytest.approx(float(b.to_host(losses.mse(model(x), y)[0])), rel=1e-6)
    assert history.rate == [cosine(0.1, 25)(k) for k in history.step]
    assert history.seconds == sorted(history.seconds)
    assert history.state.step == 25
    assert not history.interrupted
    assert len(run(b, small(b), x, y, steps=300).step) == 101


def test_numbers_do_not_depend_on_logging(b):
    x, y = line(b)
    ends = []
    for log_every in (1, 7, 50):
        model = small(b)
        run(b, model, x, y, optimizer=Adam(), rate=0.01, steps=50, log_every=log_every)
        ends.append(b.to_host(model.parameters["0.weight"]))
    assert all((end == ends[0]).all() for end in ends)


@pytest.mark.parametrize("make", [SGD, Momentum, Adam])
@pytest.mark.parametrize("batch_size", [None, 6])
def test_a_stopped_run_goes_on_bit_for_bit(b, make, batch_size):
    x, y = line(b)

    class StopAt:
        def on_log(self, state):
            if state.step == 30:
                signal.raise_signal(signal.SIGINT)

    def go(callbacks):
        model = small(b)
        return run(
            b, model, x, y, optimizer=make(), rate=cosine(0.05, 60), steps=60, batch_size=batch_size,
            rng=np.random.default_rng(5), log_every=10, callbacks=callbacks,
        )  # fmt: skip

    whole, parts = go([]), go([StopAt()])
    assert parts.interrupted
    assert parts.state.step == 30
    again = resume(parts.state, x, y)
    assert again.step == whole.step
    assert again.loss == whole.loss
    for name, value in whole.state.arrays.items():
        np.testing.assert_array_equal(b.to_host(value), b.to_host(again.state.arrays[name]))


def test_ctrl_c_between_two_logs_keeps_the_step(host64):
    x, y = line(host64)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    history = run(host64, small(host64), x, y, rate=0.01, steps=10_000_000, log_every=10_000_000)
    timer.join()
    assert history.interrupted
    assert 0 < history.state.step < 10_000_000
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_changed_total_needs_override(host64):
    x, y = line(host64)
    state = run(host64, small(host64), x, y, steps=20, log_every=10).state
    with pytest.raises(CheckpointMismatch, match=r"planned for 20.*steps=40.*override=True"):
        resume(state, x, y, steps=40)
    history = resume(state, x, y, steps=40, override=True)
    assert history.step == [0, 10, 20, 30, 40]
    assert history.state.extra["overrides"] == [{"at_step": 20, "from_steps": 20, "to_steps": 40}]


def test_batches_cover_the_rows_once_an_epoch(host64):
    x, y = line(host64, rows=20)
    state = run(host64, small(host64), x, y, batch_size=6, rng=np.random.default_rng(0), steps=3).state
    chosen = state.batches(20, 0, 6)
    assert chosen.shape == (6, 6)
    for epoch in (chosen[:3], chosen[3:]):
        assert len(set(epoch.ravel())) == 18
    assert (chosen[:3] != chosen[3:]).any()
    np.testing.assert_array_equal(state.batches(20, 4, 2), chosen[4:])


def test_callbacks_are_called_in_order(host64):
    x, y = line(host64)
    calls = []

    class Diary:
        def on_start(self, state):
            calls.append(("start", state.step))

        def on_log(self, state):
            calls.append(("log", state.step))

        def on_checkpoint(self, state):
            calls.append(("checkpoint", state.step))

        def on_end(self, state):
            calls.append(("end", state.step))

    run(host64, small(host64), x, y, steps=4, log_every=2, callbacks=[Diary()])
    assert calls == [("start", 0), ("log", 2), ("checkpoint", 2), ("log", 4), ("checkpoint", 4), ("end", 4)]


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"steps": 0}, ValueError, "steps must be a whole number from 1, not 0"),
        ({"steps": 1.5}, ValueError, "steps"),
        ({"log_every": 0}, ValueError, "log_every"),
        ({"rate": 0}, ValueError, "positive"),
        ({"rate": -0.1}, ValueError, "positive"),
        ({"batch_size": 21, "rng": np.random.default_rng(0)}, ValueError, "only 20 rows"),
        ({"batch_size": 5}, ValueError, "rng"),
        ({"engine": "eagre"}, UnknownName, "Did you mean 'eager'"),
        ({"loss": "msee"}, UnknownName, "Did you mean 'mse'"),
        ({"loss": "bce"}, ValueError, "does not end in a sigmoid"),
        ({"loss": "bce_with_logits"}, ValueError, r"targets of bce_with_logits must lie in \[0, 1\]; y runs from -2"),
    ],
)
def test_bad_settings_are_refused_before_the_first_step(b, changes, error, words):
    x, y = line(b)
    model = small(b)
    before = b.to_host(model.parameters["0.weight"]).copy()
    with pytest.raises(error, match=words):
        run(b, model, x, y, **changes)
    np.testing.assert_array_equal(b.to_host(model.parameters["0.weight"]), before)


def test_bad_arrays_are_refused(b):
    x, y = line(b)
    model = small(b)
    with pytest.raises(ShapeError, match=r"y has shape \(20,\).*\(20, 1\).*reshape"):
        run(b, model, x, y.reshape(-1))
    with pytest.raises(ShapeError, match=r"rows"):
        run(b, model, x, y[:7])
    with pytest.raises(ShapeError, match="no rows"):
        run(b, model, x[:0], y[:0])
    with pytest.raises(TypeError, match="y is float64"):
        run(b, model, x, b.asarray(np.zeros((20, 1)), dtype="float64"))
    for name, arrays in (("x", (spoilt(b, x), y)), ("y", (x, spoilt(b, y)))):
        with pytest.raises(ValueError, match=f"{name} holds NaN or infinity, first in row 3"):
            run(b, model, *arrays)


def spoilt(b, array):
    values = b.to_host(array).copy()
    values[3] = np.nan
    return b.asarray(values)


def test_a_sigmoid_output_is_not_given_another_sigmoid(host64):
    data = load_xor()
    model = nn.mlp([2, 4, 1], output="sigmoid", backend=host64, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="applies the sigmoid itself"):
        run(host64, model, data.x_train, data.y_train, loss="bce_with_logits")
    assert run(host64, model, data.x_train, data.y_train, loss="bce").loss[-1] > 0


def test_pixel_numbers_in_a_sine_network_are_refused(b):
    """D-17."""
    model = nn.siren([2, 4, 1], backend=b, rng=np.random.default_rng(0))
    x = b.asarray(np.array([[0.0, 0.0], [255.0, 10.0]]))
    with pytest.raises(ValueError, match=r"x reaches 255; a sine network expects coordinates in \[-1, 1\]"):
        run(b, model, x, b.asarray(np.zeros((2, 1))))


def test_training_exports_the_optimisers():
    assert training.SGD is SGD


def test_a_bar_appears_in_long_runs_and_can_be_switched_off(host64, capsys, monkeypatch):
    x, y = line(host64)
    for off, shown in (("", True), ("off", False)):
        monkeypatch.setenv("NNLAB_PROGRESS", off)
        run(host64, small(host64), x, y, steps=20, log_every=1, callbacks=[training.Progress(delay=0)])
        assert ("step" in capsys.readouterr().err) is shown
    monkeypatch.delenv("NNLAB_PROGRESS")
    run(host64, small(host64), x, y, steps=20)
    assert capsys.readouterr().err == ""


def test_what_is_no_optimizer_or_engine_or_number_is_named(host64):
    x, y = line(host64)
    for wrong in ("adam", Adam):
        with pytest.raises(TypeError, match="optimizer must be an optimiser such as"):
            run(host64, small(host64), x, y, optimizer=wrong)
    with pytest.raises(UnknownName, match="unknown engine None"):
        run(host64, small(host64), x, y, engine=None)
    with pytest.raises(ValueError, match="steps must be a whole number from 1, not '10'"):
        run(host64, small(host64), x, y, steps="10")
    with pytest.raises(TypeError, match=r'loss must be a function of nnlab\.nn\.losses .* such as "mse", not None'):
        run(host64, small(host64), x, y, loss=None)
    with pytest.raises(TypeError, match=r"callbacks must be a list, not <.*Progress.*>: put it into one, callbacks="):
        run(host64, small(host64), x, y, callbacks=training.Progress())
    with pytest.raises(TypeError, match="the engine 'eager' has no setting 'tile'; it takes none"):
        engine("eager", tile=3)
    with pytest.raises(TypeError, match="the engine 'tiled' has no setting 'tiles'; it takes tile, threads"):
        engine("tiled", tiles=3)


@pytest.mark.parametrize("name", ["eager", "tiled", "graph", "fused"])
def test_fewer_rows_than_a_batch_are_refused_on_the_way_too(b, name):
    if b.is_host != (name == "tiled") and name != "eager":
        pytest.skip(f"{name} does not run on {b.home}")
    x, y = line(b)
    state = run(b, small(b), x, y, batch_size=6, rng=np.random.default_rng(0), engine=name).state
    with pytest.raises(ValueError, match="batch_size is 6, but x has only 5 rows"):
        resume(state, x[:5], y[:5], steps=40, override=True)


def test_a_run_cannot_end_before_where_it_stands(host64):
    x, y = line(host64)
    history = run(host64, small(host64), x, y, steps=10)
    with pytest.raises(ValueError, match="10 steps already; its total cannot become 5"):
        resume(history.state, x, y, steps=5, override=True)
    assert history.state.steps == 10


def test_a_second_ctrl_c_stops_at_once(host64):
    class Impatient:
        def on_log(self, state):
            signal.raise_signal(signal.SIGINT)

        def on_checkpoint(self, state):
            signal.raise_signal(signal.SIGINT)

    x, y = line(host64)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run(host64, small(host64), x, y, callbacks=[Impatient()])
    assert signal.getsignal(signal.SIGINT) is before


def test_a_complete_run_resumes_at_once_wherever_it_is(host64):
    """Its engine may be one that this machine has not."""
    x, y = line(host64)
    history = run(host64, small(host64), x, y, steps=5)
    history.state.engine = "fused"
    again = resume(history.state, x, y)
    assert (again.loss, again.interrupted) == (history.loss, False)
