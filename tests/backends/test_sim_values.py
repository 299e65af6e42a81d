"""The simulated GPU computes what NumPy computes, in the same types; views share memory."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from nnlab.backends.sim.ufuncs import NAMES

X = np.array([[0.5, -1.5, 2.0], [3.0, 0.0, -0.25]], np.float32)
Y = np.array([[2.0, 1.0, 0.5], [1.5, 4.0, 3.0]], np.float32)
INTEGER = {"bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift"}


@pytest.mark.parametrize("name", NAMES)
def test_every_ufunc(sim, name):
    ufunc = getattr(np, name)
    hosts = [X, Y][: ufunc.nin]
    if name in INTEGER:
        hosts = [np.array([6, 3]), np.array([1, 2])][: ufunc.nin]
    with np.errstate(all="ignore"):
        expected = ufunc(*hosts)
    arrays = [sim.asarray(host) for host in hosts]
    with sim.measure() as receipt, np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        result = getattr(sim.xp, name)(*arrays)
        out = sim.xp.empty_like(result)
        assert getattr(sim.xp, name)(*arrays, out=out) is out
    assert receipt.launches == 2
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(sim.to_host(result), expected)
    np.testing.assert_array_equal(sim.to_host(out), expected)


CALLS = {
    "operators": lambda xp, x, y: (2.0 * x - y / 3.0) ** 2 % 1.5 + (-x) // 2.0 + abs(y),
    "compare": lambda xp, x, y: (x > y) & ~(x == 0.5) | (y <= 1.0),
    "reflected": lambda xp, x, y: 1.0 / (1.0 + y) - (2.0**y),
    "where": lambda xp, x, y: xp.where(x > 0, x, 0.0),
    "clip": lambda xp, x, y: xp.clip(x, -1.0, 1.0),
    "sum0": lambda xp, x, y: xp.sum(x, axis=0),
    "sum1": lambda xp, x, y: x.sum(axis=1, keepdims=True),
    "mean0": lambda xp, x, y: x.mean(axis=0),
    "var0": lambda xp, x, y: x.var(axis=0),
    "std": lambda xp, x, y: xp.std(x),
    "argmax": lambda xp, x, y: x.argmax(axis=1),
    "cumsum": lambda xp, x, y: xp.cumsum(x, axis=1),
    "matmul": lambda xp, x, y: x @ y.T,
    "matvec": lambda xp, x, y: x @ y[0],
    "inner": lambda xp, x, y: xp.dot(x[0], y[0]),
    "single": lambda xp, x, y: x[:1] @ y[:1].T,
    "einsum": lambda xp, x, y: xp.einsum("ij,kj->ik", x, y),
    "stack": lambda xp, x, y: xp.stack([x, y], axis=1),
    "concatenate": lambda xp, x, y: xp.concatenate([x, y], axis=1),
    "vstack": lambda xp, x, y: xp.vstack([x[0], y[1]]),
    "hstack": lambda xp, x, y: xp.hstack([x, y]),
    "transpose": lambda xp, x, y: x.transpose().copy().reshape(2, 3),
    "ravel": lambda xp, x, y: x.T.ravel(),
    "take": lambda xp, x, y: xp.take(x, xp.arange(2), axis=1),
    "mask": lambda xp, x, y: x[x > 0],
    "rows": lambda xp, x, y: x[xp.asarray([1, 0, 1])],
    "pairs": lambda xp, x, y: x[xp.asarray([1, 0]), xp.asarray([2, 2])],
    "part": lambda xp, x, y: x[:, xp.asarray([2, 0])],
    "none": lambda xp, x, y: x[None, ..., 1],
    "sort": lambda xp, x, y: xp.sort(x, axis=1),
    "round": lambda xp, x, y: xp.round(x * 3.3, 1),
    "linspace": lambda xp, x, y: xp.linspace(-1.0, 1.0, 5, dtype="float32"),
    "eye": lambda xp, x, y: xp.eye(3, dtype="float32") * x[0],
    "full": lambda xp, x, y: xp.full((2, 2), 7, dtype="float32") + xp.ones((2, 2), dtype="float32"),
    "like": lambda xp, x, y: xp.zeros_like(x) + xp.ones_like(x) + xp.full_like(x, 3.0),
    "astype": lambda xp, x, y: x.astype("int32"),
    "integers": lambda xp, x, y: xp.arange(6) / 2,
    "nonfinite": lambda xp, x, y: xp.isfinite(x / (x * 0.0)),
    "float64 wins": lambda xp, x, y: x * np.float64(2.0),
    "python float": lambda xp, x, y: x * 2.0 + 1,
    "0-d": lambda xp, x, y: x * x.sum(),
    "where=": lambda xp, x, y: xp.add(x, y, out=xp.zeros_like(x), where=x > 0),
    "dtype=": lambda xp, x, y: xp.sum(x, dtype="float64"),
    "isclose": lambda xp, x, y: xp.isclose(x, x + 1e-9),
    "allclose": lambda xp, x, y: xp.allclose(x, y),
    "array_equal": lambda xp, x, y: xp.array_equal(x, x + 0.0),
    "count_nonzero": lambda xp, x, y: xp.count_nonzero(x, axis=1),
    "repeat": lambda xp, x, y: xp.repeat(x, 2, axis=1),
    "tile": lambda xp, x, y: xp.tile(x, (2, 1)),
    "roll": lambda xp, x, y: xp.roll(x, 1, axis=1),
    "diff": lambda xp, x, y: xp.diff(x) + xp.diff(x, axis=0)[:, 1:],
    "outer": lambda xp, x, y: xp.outer(x, y[0]),
    "meshgrid": lambda xp, x, y: xp.stack(xp.meshgrid(x[0], y[:, 0])),
    "meshgrid ij": lambda xp, x, y: xp.stack(xp.meshgrid(x[0], y[:, 0], indexing="ij")),
    "nan_to_num": lambda xp, x, y: xp.nan_to_num(x / (x * 0.0), nan=1.0),
    "result_type": lambda xp, x, y: xp.zeros(2, dtype=xp.result_type(x, "float64", 1.0)),
    "squeeze": lambda xp, x, y: xp.squeeze(xp.expand_dims(x, 0)),
    "swapaxes": lambda xp, x, y: x.swapaxes(0, 1),
    "broadcast": lambda xp, x, y: xp.broadcast_to(x[0], (4, 3)) * 1.0,
    "flip": lambda xp, x, y: xp.flip(x, 1) + 0.0,
    "moveaxis": lambda xp, x, y: xp.moveaxis(x, 0, 1),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_same_values_and_types_as_numpy(sim, call):
    with np.errstate(all="ignore"):
        expected = call(np, X.copy(), Y.copy())
    result = call(sim.xp, sim.asarray(X), sim.asarray(Y))
    assert result.shape == np.shape(expected)
    assert result.dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(sim.to_host(result), expected, rtol=1e-6)


def test_where_without_out_leaves_the_rest_unset(sim):
    x = sim.asarray(X)
    doubled = sim.xp.multiply(2.0, x, where=x > 0)
    assert doubled.dtype == np.float32
    assert sim.to_host(doubled[x > 0]).tolist() == (2 * X[X > 0]).tolist()


@pytest.mark.parametrize("axis", [2, -3])
def test_an_axis_that_is_not_there(sim, axis):
    with pytest.raises(np.exceptions.AxisError):
        sim.asarray(X).sum(axis=axis)
    with pytest.raises(np.exceptions.AxisError):
        sim.asarray(X).mean()[()].max(axis=axis)


UPDATES = {
    "add": lambda x: x.__iadd__(1.0),
    "slice": lambda x: x.__setitem__((slice(None), 1), 5.0),
    "part": lambda x: x[:, 1:].__imul__(2.0),
    "row": lambda x: x.__setitem__(0, x[1]),
    "mask": lambda x: x.__setitem__(x > 0, 0.0),
    "all": lambda x: x.__setitem__(..., x * 2.0),
    "fill": lambda x: x.fill(3.0),
    "element": lambda x: x.__setitem__((1, 2), -1.0),
}


@pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES)
def test_in_place_updates(sim, update):
    host, x = X.copy(), sim.asarray(X)
    update(host)
    update(x)
    np.testing.assert_array_equal(sim.to_host(x), host)


VIEWS = {
    "row": lambda x: x[0],
    "column": lambda x: x[:, 1],
    "T": lambda x: x.T,
    "reshape": lambda x: x.reshape(3, 2),
    "element": lambda x: x[0, 0],
    "ravel": lambda x: x.ravel(),
    "view": lambda x: x.view(x.dtype),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_views_share_memory_and_cost_nothing(sim, view):
    x = sim.asarray(X)
    with sim.measure() as receipt:
        part = view(x)
    assert (receipt.launches, receipt.allocations, receipt.pool_hits, receipt.waits) == (0, 0, 0, 0)
    part[...] = 9.0
    assert (sim.to_host(x) == 9.0).sum() == part.size


def test_a_view_keeps_the_memory_of_its_array(sim):
    view = sim.xp.zeros((1024,), dtype="float32")[:1]
    assert sim.memory().used == 4096
    del view
    assert sim.memory().used == 0


def test_a_view_reads_the_same_bytes_as_another_type(sim):
    raw = sim.xp.zeros((1024,), dtype="uint8")
    numbers = raw[512:].view("float32")
    numbers[...] = 1.5
    assert (numbers.shape, numbers.dtype) == ((128,), np.float32)
    np.testing.assert_array_equal(sim.to_host(raw), np.repeat([0, 1], 512) * np.tile([0, 0, 192, 63], 256))


def test_boolean_masks_wait_and_where_does_not(sim):
    x = sim.asarray(X)
    with sim.measure() as masked:
        x[x > 0]
    with sim.measure() as chosen:
        sim.xp.where(x > 0, x, 0.0)
    with sim.measure() as counted:
        (x > 0).nonzero()
    assert (masked.waits, masked.d2h_copies, chosen.waits, chosen.d2h_copies) == (1, 1, 0, 0)
    assert counted.waits == 1


def test_a_number_goes_up_in_the_call_of_a_fill(sim):
    x = sim.asarray(X)
    with sim.measure() as receipt:
        x[x > 0] = 5.0
        sim.xp.asarray(3.0)
    assert receipt.h2d_copies == 0
    assert receipt.by_operation()["fill"] == 2


@pytest.mark.parametrize(("arrays", "copies", "launches"), [(8, 0, 8), (9, 1, 1)])
def test_many_small_arrays_are_put_together_by_one_kernel(sim, arrays, copies, launches):
    parts = [sim.asarray([float(i)]) for i in range(arrays)]
    with sim.measure() as receipt:
        together = sim.xp.concatenate(parts)
    assert (receipt.h2d_copies, receipt.launches) == (copies, launches)
    assert sim.to_host(together).tolist() == list(range(arrays))


def test_nonzero(sim):
    rows, columns = sim.asarray(X).nonzero()
    np.testing.assert_array_equal([sim.to_host(rows), sim.to_host(columns)], np.nonzero(X))


@pytest.mark.parametrize("seed", [0, 7])
def test_random_draws_stay_on_the_device_and_repeat(sim, seed):
    draw = [sim.xp.random.default_rng(seed).standard_normal((3, 2), dtype="float32") for _ in range(2)]
    assert sim.owns(draw[0])
    assert draw[0].dtype == np.float32
    np.testing.assert_array_equal(*(sim.to_host(array) for array in draw))


def test_iteration_gives_views_of_rows(sim):
    rows = list(sim.asarray(X))
    assert [sim.to_host(row).tolist() for row in rows] == X.tolist()
    assert len(sim.asarray(X)) == 2


def test_asarray_turns_floats_into_the_backends_type_and_leaves_integers(sim):
    assert sim.asarray([1.0]).dtype == np.float32
    assert sim.asarray(np.arange(3)).dtype == np.int64
    assert sim.asarray([True]).dtype == np.bool_
    assert sim.astype("float64").asarray(np.float32([1])).dtype == np.float64
    x = sim.asarray([1.0])
    assert sim.asarray(x) is x
    assert sim.astype("float64").asarray(x).dtype == np.float64
    with sim.measure() as receipt:
        assert sim.asarray([1.0], dtype="float64").dtype == np.float64
    assert (receipt.h2d_copies, receipt.h2d_bytes) == (1, 8)
