"""Networks: starts, shapes, backward passes, copies."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import nnlab
from nnlab import nn
from nnlab.errors import MixedBackendError, ShapeError, UnknownName
from nnlab.nn import losses

ACTIVATIONS = ["linear", "tanh", "sigmoid", "relu", "leaky_relu"]


@pytest.mark.parametrize("loss", losses.LOSSES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_backward_agrees_with_central_differences(b, rng, activation, loss):
    output = "sigmoid" if loss == "bce" else "linear"
    model = nn.mlp([3, 5, 4, 2], activation=activation, output=output, backend=b, rng=rng)
    x, y = b.asarray(rng.normal(size=(7, 3))), b.asarray(rng.uniform(size=(7, 2)))
    report = nn.check_gradients(model, losses.LOSSES[loss], x, y)
    assert report.ok, report
    assert set(report.errors) == {*model.parameters, "input"}


def test_backward_of_a_siren(b, rng):
    model = nn.siren([2, 8, 8, 1], backend=b, rng=rng)
    x, y = b.asarray(rng.uniform(-1, 1, size=(6, 2))), b.asarray(rng.uniform(size=(6, 1)))
    assert nn.check_gradients(model, losses.mse, x, y).ok


def test_a_wrong_backward_is_found(host64, rng, monkeypatch):
    """The popular mistake: ReLU's mask taken from its output with >=, which is always true."""
    model = nn.mlp([2, 6, 1], activation="relu", backend=host64, rng=rng)
    wrong = nn.activations.Function("relu", nn.activations._relu, lambda xp, g, z, a: g * (a >= 0))
    monkeypatch.setitem(nn.activations.FUNCTIONS, "relu", wrong)
    report = nn.check_gradients(model, losses.mse, rng.normal(size=(5, 2)), rng.normal(size=(5, 1)))
    assert not report.ok
    assert "WRONG" in repr(report)


def test_gradients_are_overwritten_in_fixed_buffers(b, rng):
    model = nn.mlp([2, 3, 1], backend=b, rng=rng)
    x, y = b.asarray(rng.normal(size=(4, 2))), b.asarray(rng.normal(size=(4, 1)))
    buffers = dict(model.gradients)
    seen = []
    for _ in range(2):
        model.backward(losses.mse(model(x), y)[1])
        seen.append({name: b.to_host(value).copy() for name, value in model.gradients.items()})
    for name, value in model.gradients.items():
        assert value is buffers[name]
        np.testing.assert_array_equal(seen[1][name], seen[0][name])


def test_weights_start_alike_everywhere(b, host64):
    here = nn.mlp([4, 8, 1], backend=b, rng=np.random.default_rng(3))
    there = nn.mlp([4, 8, 1], backend=host64, rng=np.random.default_rng(3))
    for name, value in there.parameters.items():
        np.testing.assert_array_equal(b.to_host(here.parameters[name]), value.astype(np.float32))


def test_initial_ranges(host64, rng):
    xavier = nn.mlp([300, 200], backend=host64, rng=rng).parameters
    assert abs(xavier["0.weight"]).max() == pytest.approx(math.sqrt(6 / 500), rel=1e-3)
    assert not xavier["0.bias"].any()
    he = nn.mlp([300, 200, 1], activation="relu", backend=host64, rng=rng).parameters["0.weight"]
    assert he.std() == pytest.approx(math.sqrt(2 / 300), rel=0.02)
    assert nn.mlp([300, 200], init="normal", backend=host64, rng=rng).parameters["0.weight"].std() == pytest.approx(
        1, rel=0.02
    )


def test_siren_ranges_and_spread(host64, rng):
    """D-16: without the division by omega_0 the hidden arguments would spread 30 times wider."""
    model = nn.siren([2, 256, 256, 256, 1], backend=host64, rng=rng)
    bounds = [abs(model.parameters[f"{i}.weight"]).max() for i in (0, 2, 4, 6)]
    assert bounds[0] == pytest.approx(0.5, rel=0.01)
    assert bounds[1:3] == pytest.approx([0.005103104] * 2, rel=1e-3)
    assert abs(model.parameters["2.bias"]).max() == pytest.approx(1 / 16, rel=0.02)
    narrow = nn.siren([2, 64, 64, 1], backend=host64, rng=rng).parameters["2.weight"]
    assert abs(narrow).max() == pytest.approx(0.010206207, rel=1e-2)
    for i in (0, 2, 4):
        model.parameters[f"{i}.bias"][...] = 0
    model(rng.uniform(-1, 1, size=(4096, 2)))
    spread = [layer.argument.std() for layer in model.layers if isinstance(layer, nn.Sine)]
    assert spread[0] == pytest.approx(7.1, abs=0.4)
    assert all(0.85 < s < 1.1 for s in spread[1:])


def test_config_builds_the_network_again(b, rng):
    for model in (
        nn.mlp([3, 4, 2], output="sigmoid", bias=False, backend=b, rng=rng),
        nn.siren([2, 4, 1], omega_0=9, backend=b, rng=rng),
    ):
        again = nn.from_config(json.loads(json.dumps(model.config)), backend=b)
        assert again.config == model.config
        assert {n: p.shape for n, p in again.parameters.items()} == {n: p.shape for n, p in model.parameters.items()}
        assert repr(again) == repr(model)


def test_copies_are_independent_and_equal(b, host64, rng):
    model = nn.mlp([3, 4, 1], backend=b, rng=rng)
    x = rng.normal(size=(5, 3))
    copy = model.to(host64)
    np.testing.assert_allclose(copy(x), b.to_host(model(b.asarray(x))), rtol=1e-5, atol=1e-6)
    copy.parameters["0.weight"][...] = 0
    assert b.to_host(model.parameters["0.weight"]).any()
    wide = model.astype("float64")
    assert wide.parameters["0.weight"].dtype == np.float64
    assert wide.backend.name == b.name


def test_repr_is_a_table(host64, rng):
    text = repr(nn.mlp([6, 64, 1], backend=host64, rng=rng))
    assert "Linear 6 -> 64" in text
    assert "448" in text
    assert "513" in text.splitlines()[-1]


def test_inputs_of_the_wrong_kind_are_named(b, rng):
    model = nn.mlp([3, 4, 1], backend=b, rng=rng)
    with pytest.raises(ShapeError, match=r"x has shape \(5, 2\).*\(rows, 3\)"):
        model(b.asarray(np.zeros((5, 2))))
    with pytest.raises(TypeError, match=r"x is float64.*float32.*asarray"):
        model(b.asarray(np.zeros((5, 3)), dtype="float64"))
    with pytest.raises(TypeError, match=r"x is int64"):
        model(b.asarray(np.zeros((5, 3), np.int64)))
    if not b.is_host:
        with pytest.raises(MixedBackendError, match="x lives on the host"):  # D-02
            model(np.zeros((5, 3), np.float32))


def test_wrong_names_and_sizes(host64, rng):
    with pytest.raises(UnknownName, match="Did you mean 'tanh'"):
        nn.mlp([2, 2], activation="tanhh", backend=host64, rng=rng)
    with pytest.raises(UnknownName, match="Did you mean 'xavier'"):
        nn.mlp([2, 2], init="xaver", backend=host64, rng=rng)
    with pytest.raises(UnknownName, match="Did you mean 'numpy'"):
        nnlab.backend("nunpy")
    for sizes in ([3], [3, 0], [3, 1.5]):
        with pytest.raises(ShapeError, match="sizes"):
            nn.mlp(sizes, backend=host64, rng=rng)
    for omega_0 in (0, -30, np.nan, np.inf):
        with pytest.raises(ValueError, match=f"omega_0 must be a finite number above zero, not {omega_0}"):
            nn.Sine(omega_0)
    with pytest.raises(ShapeError, match="layer 1 takes 5 inputs"):
        nn.Sequential([nn.Linear(3, 4, backend=host64, rng=rng), nn.Linear(5, 1, backend=host64, rng=rng)])


def test_layers_of_two_homes_do_not_make_a_network(host64, rng):
    narrow = nnlab.backend("numpy")
    with pytest.raises(MixedBackendError, match="layer 1"):
        nn.Sequential([nn.Linear(3, 4, backend=host64, rng=rng), nn.Linear(4, 1, backend=narrow, rng=rng)])


def test_activation_takes_the_backend_of_its_network(host64, rng):
    lone = nn.Activation("tanh")
    with pytest.raises(TypeError, match="no backend yet"):
        lone(np.zeros((1, 1)))
    nn.Sequential([nn.Linear(3, 4, backend=host64, rng=rng), lone, nn.Sine(30.0)])
    assert lone.backend is host64


def test_numerical_gradient(host64):
    p = {"a": np.array([1.0, 2.0]), "b": np.array(3.0)}
    slopes = nn.numerical_gradient(lambda q: float((q["a"] ** 2).sum() * q["b"]), p)
    np.testing.assert_allclose(slopes["a"], [6, 12], rtol=1e-8)
    np.testing.assert_allclose(slopes["b"], 5, rtol=1e-8)
    np.testing.assert_allclose(nn.numerical_gradient(lambda q: float(q @ q), np.array([1.0, -1.0])), [2, -2], rtol=1e-8)
    with pytest.raises(TypeError, match="float64"):
        nn.numerical_gradient(lambda q: 0.0, np.zeros(2, np.float32))


def test_backward_wants_a_forward_pass_and_a_gradient_like_the_prediction(b, rng):
    model = nn.mlp([3, 4, 1], activation="relu", output="relu", backend=b, rng=rng)
    gradient = b.asarray(np.ones((5, 1)))
    with pytest.raises(RuntimeError, match=r"call model\(x\) before"):
        model.backward(gradient)
    model(b.asarray(np.ones((5, 3))))
    for wrong in (gradient[:, 0], gradient[:4]):  # (5,) against (5, 1) would broadcast
        with pytest.raises(ShapeError, match=r"gradient has shape .*prediction had \(5, 1\)"):
            model.backward(wrong)
    with pytest.raises(TypeError, match="gradient is float64"):
        model.backward(b.asarray(np.ones((5, 1)), dtype="float64"))
    assert model.backward(gradient).shape == (5, 3)


def test_what_is_no_backend_and_no_generator_is_named(host64, rng):
    for make in (nn.mlp, nn.siren):
        with pytest.raises(TypeError, match=r"backend must be a backend, not 'numpy'; make one with nnlab.backend"):
            make([2, 1], backend="numpy", rng=rng)
        with pytest.raises(TypeError, match=r"rng=np.random.default_rng\(seed\), not rng=7"):
            make([2, 1], backend=host64, rng=7)
        with pytest.raises(ShapeError, match="sizes"):
            make(3, backend=host64, rng=rng)


def test_a_list_is_no_array(b, rng):
    model = nn.mlp([2, 1], backend=b, rng=rng)
    with pytest.raises(TypeError, match=r"x must be an array, not list; make one with: x = backend.asarray\(x\)"):
        model([[1.0, 2.0]])
