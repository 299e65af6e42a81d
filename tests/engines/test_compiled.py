"""What Numba compiles for the tiled engine: the numbers of NumPy, and no more than float32's own distance from them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import nnlab
from nnlab import nn
from nnlab.engines import Tiled, compiled, engine
from nnlab.engines.small import SmallSession
from nnlab.engines.tiled import TILE_BYTES, TiledSession, Worker
from nnlab.errors import DivergenceError
from nnlab.nn import losses
from nnlab.optim import SGD, Adam, Momentum, TrainState, constant
from nnlab.training import fit

needs_numba = pytest.mark.skipif(not compiled.have_numba(), reason='Numba is not installed: pip install -e ".[fast]"')
ACTIVATIONS = ["linear", "tanh", "sigmoid", "relu", "leaky_relu", "sine"]


def network(kind, sizes, backend, *, bias=True, output="linear"):
    rng = np.random.default_rng(3)
    if kind == "sine":
        return nn.siren(sizes, omega_0=10.0, backend=backend, rng=rng)
    return nn.mlp(sizes, activation=kind, output=output, bias=bias, backend=backend, rng=rng)


def run(model, *, rows, loss=losses.mse, optimizer=SGD, runner="tiled", steps=20, rate=0.02, log_every=None):
    rng, b = np.random.default_rng(0), model.backend
    x, y = rng.uniform(-1, 1, (rows, model.inputs)), rng.uniform(0, 1, (rows, model.outputs))
    arguments = {"loss": loss, "optimizer": optimizer(), "rate": rate, "steps": steps, "log_every": log_every}
    history = fit(model, b.asarray(x), b.asarray(y), engine=runner, **arguments)
    return history, np.concatenate([value.ravel() for value in model.parameters.values()]).astype(np.float64)


def state_of(sizes, rows, dtype="float32", steps=100):
    b = nnlab.backend("numpy", dtype=dtype)
    state = TrainState(network("tanh", sizes, b), losses.mse, SGD(), constant(0.1), steps=steps, log_every=1)
    state.optimizer.prepare(state.model.parameters)
    return state, b.asarray(np.zeros((rows, sizes[0]))), b.asarray(np.zeros((rows, sizes[-1])))


def check_against_float64(make, runner, **how):
    """The promise for every engine: at most four times as far from float64 as NumPy's own float32."""
    exact, start = nnlab.backend("numpy", dtype="float64"), make(nnlab.backend("numpy"))
    begin = np.concatenate([value.ravel() for value in start.parameters.values()])
    (_, w64), (_, w32) = (run(make(b), runner="eager", **how) for b in (exact, nnlab.backend("numpy")))
    history, found = run(start, runner=runner, **how)
    moved = np.linalg.norm(w64 - begin)
    assert moved > 1e-3
    # where NumPy was lucky, 1e-6 of the way is as good as float32 gets
    assert np.linalg.norm(found - w64) / moved < max(4 * np.linalg.norm(w32 - w64) / moved, 4e-6)
    return history, found


@needs_numba
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("rows", [5, 1100])  # one tile, and three with an uneven end
def test_the_loop_keeps_to_float64(activation, rows):
    sizes = [3, 7, 6, 2]  # groups of four with every remainder
    check_against_float64(lambda b: network(activation, sizes, b), "tiled", rows=rows)


@needs_numba
@pytest.mark.parametrize("optimizer", [SGD, Momentum, Adam])
@pytest.mark.parametrize("loss", [losses.mse, losses.sse, losses.bce_with_logits, losses.bce])
def test_the_loop_knows_every_loss_and_optimizer(loss, optimizer):
    output = "sigmoid" if loss is losses.bce else "linear"

    def make(b):
        return network("tanh", [2, 9, 1], b, output=output)

    rate = 1e-3 if loss is losses.sse else 0.02
    history, _ = check_against_float64(make, "tiled", rows=40, loss=loss, optimizer=optimizer, rate=rate)
    assert history.loss[-1] < history.loss[0]


@needs_numba
def test_the_loop_takes_networks_without_bias():
    check_against_float64(lambda b: network("tanh", [2, 8, 1], b, bias=False), "tiled", rows=30)


@needs_numba
@pytest.mark.parametrize("activation", ["tanh", "sine"])
@pytest.mark.parametrize("bias", [True, False])
def test_the_tiles_keep_to_float64(activation, bias):
    if activation == "sine" and not bias:
        pytest.skip("a sine network always has biases")
    make = {
        "tanh": lambda b: network("tanh", [2, 32, 20, 1], b, bias=bias),
        "sine": lambda b: network("sine", [2, 32, 20, 1], b),
    }
    check_against_float64(make[activation], Tiled(tile=100, threads=2), rows=330)


@pytest.mark.parametrize("numba", [True, False])
@pytest.mark.parametrize("kinds", ["sine", "sine linear", "tanh sine", "sine tanh relu sine", "sine relu linear tanh"])
@pytest.mark.parametrize("outputs", [1, 2])
def test_gradients_take_the_place_of_outputs_that_nothing_needs(monkeypatch, numba, kinds, outputs):
    if numba and not compiled.have_numba():
        pytest.skip("Numba is not installed")
    monkeypatch.setattr(compiled, "have_numba", lambda: numba)

    def make(b):
        rng, layers, inputs = np.random.default_rng(1), [], 3
        for kind in kinds.split():
            layers.append(nn.Linear(inputs, 16, backend=b, rng=rng))
            if kind != "linear":
                layers.append(nn.Sine(3.0) if kind == "sine" else nn.Activation(kind))
            inputs = 16
        return nn.Sequential([*layers, nn.Linear(inputs, outputs, backend=b, rng=rng)])

    check_against_float64(make, Tiled(tile=100, threads=2), rows=330)


@needs_numba
def test_the_same_run_gives_the_same_bits():
    for runner in ("tiled", Tiled(tile=64, threads=2)):
        ends = [run(network("tanh", [2, 32, 1], nnlab.backend("numpy")), rows=300, runner=runner) for _ in range(2)]
        assert ends[0][0].loss == ends[1][0].loss
        np.testing.assert_array_equal(ends[0][1], ends[1][1])


@needs_numba
def test_tanh_and_sine_of_every_size():
    from nnlab.engines.compiled.activations import sine_tile, tanh_tile

    x = np.concatenate([np.linspace(-12, 12, 40_001), [-1e-20, 0.0, 1e-20, -np.inf, np.inf]]).astype(np.float32)
    found = x.reshape(1, -1).copy()
    tanh_tile(found, np.zeros(x.size, np.float32))
    np.testing.assert_allclose(found[0], np.tanh(x.astype(np.float64)), rtol=1e-6, atol=4e-7)
    x = np.linspace(-300, 300, 40_001).astype(np.float32)
    slope, a, shift = x.reshape(1, -1).copy(), np.empty((1, x.size), np.float32), np.full(x.size, 0.25, np.float32)
    sine_tile(slope, shift, np.float32(2.0), a)
    exact = 2.0 * (x + shift).astype(np.float64)
    np.testing.assert_allclose(a[0], np.sin(exact), atol=2e-7)
    np.testing.assert_allclose(slope[0], 2.0 * np.cos(exact), atol=4e-7)


@needs_numba
def test_nan_stays_nan():
    from nnlab.engines.compiled.activations import sine_tile, tanh_tile

    for activate in (tanh_tile, lambda z, shift: sine_tile(z, shift, np.float32(1.0), z.copy())):
        z = np.array([[np.nan, 0.5]], np.float32)
        activate(z, np.zeros(2, np.float32))
        assert np.isnan(z[0, 0])
        assert not np.isnan(z[0, 1])
    for kind, loss, output in (("tanh", losses.mse, "linear"), ("relu", losses.bce, "sigmoid")):
        model = network(kind, [2, 8, 1], nnlab.backend("numpy"), output=output)
        model.parameters["0.weight"][0, 0] = np.nan
        with pytest.raises(DivergenceError, match="step 0"):
            run(model, rows=20, loss=loss)


@needs_numba
def test_a_changed_model_is_taken_up_by_the_next_steps():
    state, x, y = state_of([2, 8, 1], 20)
    y.fill(1.0)
    x.fill(0.5)
    session = engine("tiled").prepare(state, x, y)
    assert session.advance(2)[0] != 1.0
    for value in state.model.parameters.values():
        value.fill(0.0)
    assert session.advance(1)[0] == 1.0


@needs_numba
@pytest.mark.parametrize(
    ("sizes", "rows", "dtype", "kind"),
    [
        ([6, 64, 1], 321, "float32", SmallSession),
        ([6, 64, 1], 321, "float64", TiledSession),
        ([2, 64, 64, 1], 40_000, "float32", TiledSession),
    ],
)
def test_small_networks_in_float32_go_into_the_loop(monkeypatch, sizes, rows, dtype, kind):
    assert type(engine("tiled").prepare(*state_of(sizes, rows, dtype))) is kind
    monkeypatch.setattr(compiled, "have_numba", lambda: False)
    assert type(engine("tiled").prepare(*state_of(sizes, rows, dtype))) is TiledSession


@pytest.mark.parametrize("rows", [130, 2_500, 10_000, 40_000])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_thread_gets_as_many_tiles(rows, threads):
    session = Tiled(threads=threads).prepare(*state_of([2, 64, 128, 1], rows))
    tiles = -(-rows // session.tile)
    assert len(session.workers) == threads
    assert tiles % threads == 0
    assert session.tile * 128 * 4 <= TILE_BYTES
    assert rows - (tiles - 1) * session.tile > 0.9 * session.tile  # the last tile is nearly as large as the others


@pytest.mark.parametrize(
    ("rows", "steps", "numba", "expected"),
    [
        (321, 40_000, True, "tiled, because 40,000 steps of 6-64-1 on 321 rows are worth a compiled loop"),
        (321, 40_000, False, "eager, because the widest layer's 82,176 bytes fit the processor's cache"),
        (321, 500, True, "eager, because the widest layer's 82,176 bytes fit the processor's cache"),
        (40_000, 40_000, True, "tiled, because the widest layer's 10,240,000 bytes do not fit"),
        (40_000, 40_000, False, "tiled, because the widest layer's 10,240,000 bytes do not fit"),
    ],
)
def test_auto_knows_whether_numba_is_there(monkeypatch, capsys, rows, steps, numba, expected):
    if numba and not compiled.have_numba():
        pytest.skip("Numba is not installed")
    monkeypatch.setattr(compiled, "have_numba", lambda: numba)
    engine("auto").prepare(*state_of([6, 64, 1], rows, steps=steps))
    assert f"engine='auto': {expected}" in capsys.readouterr().out


def test_numba_is_looked_for_and_not_loaded():
    program = (
        "import sys, nnlab.training, nnlab.engines.compiled as c; c.have_numba(); assert 'numba' not in sys.modules;"
        "sys.modules['numba'] = None; assert not c.have_numba()"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@needs_numba
def test_the_compiled_loop_overflows_where_the_others_do():
    """D-13 in float32."""
    b = nnlab.backend("numpy")
    x = b.asarray(np.linspace(0, 100, 51).reshape(-1, 1))
    model = nn.mlp([1, 1], backend=b, rng=np.random.default_rng(0))
    model.parameters["0.weight"][...] = 0
    with pytest.raises(DivergenceError) as caught:
        fit(model, x, 5 * x + 3, loss="mse", optimizer=SGD(), rate=0.01, steps=200, engine="tiled")
    assert caught.value.step == 9


def test_the_threads_share_an_evaluation_and_its_bits_stay(monkeypatch):
    seen, forward = {}, Worker.forward
    monkeypatch.setattr(Worker, "forward", lambda self, x: seen[threads].add(id(self)) or forward(self, x))
    losses_of = []
    for threads in (1, 3):
        seen[threads] = set()
        state, x, y = state_of([2, 16, 16, 1], 1_000, steps=2)
        losses_of.append(Tiled(tile=70, threads=threads).prepare(state, x, y).evaluate())
    assert [len(workers) for workers in seen.values()] == [1, 3]
    assert losses_of[0].tobytes() == losses_of[1].tobytes()
