"""Fixture S: the contract of a stand-in device, which the simulated GPU keeps."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import nnlab
from nnlab.backends import backend_of
from nnlab.errors import MixedBackendError


@pytest.mark.parametrize(
    "use",
    [
        np.asarray,
        np.array,
        np.exp,
        np.sum,
        np.mean,
        np.concatenate,
        lambda x: np.stack([x, x]),
        lambda x: np.multiply(x, x),
        lambda x: np.where(x > 0, x, x),
        np.add.reduce,
    ],
)
def test_numpy_does_not_convert_in_silence(sim, use):
    x = sim.asarray([1.0, 2.0])
    with sim.measure() as receipt, pytest.raises(TypeError, match=r"xp|to_host"):
        use(x)
    assert receipt.d2h_copies == 0


@pytest.mark.parametrize("mix", [lambda x, y: x + y, lambda x, y: y * x, lambda x, y: x @ y, lambda x, y: y > x])
def test_arithmetic_with_a_numpy_array_is_refused(sim, mix):
    x, y = sim.asarray([[1.0]]), np.ones((1, 1), np.float32)
    with pytest.raises(MixedBackendError, match=r"the host.*simulated GPU \d+ \(h200\).*asarray"):
        mix(x, y)


def test_in_place_mixtures_are_refused_and_change_nothing(sim):
    x, y = sim.asarray([1.0]), np.ones(1, np.float32)
    with pytest.raises(MixedBackendError):
        x += y
    with pytest.raises(MixedBackendError):
        y += x
    with pytest.raises(MixedBackendError):
        x[:] = y
    assert float(x[0]) == 1.0
    assert y[0] == 1.0


def test_two_simulated_gpus_are_two_homes(sim):
    other = nnlab.backend("sim")
    x, y = sim.asarray([1.0]), other.asarray([1.0])
    for mix in (lambda: x + y, lambda: sim.xp.maximum(x, y), lambda: x.sum(out=y[0]), lambda: sim.to_host(y)):
        with pytest.raises(MixedBackendError, match="to_host"):
            mix()
    with pytest.raises(MixedBackendError):
        sim.matmul(x.reshape(1, 1), y.reshape(1, 1))
    assert sim.asarray(other.to_host(y)) + x == 2.0


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod", "any", "all", "argmax", "var", "std"])
def test_reductions_stay_on_the_device(sim, name):
    x = sim.asarray([[1.0, 2.0], [3.0, 4.0]])
    with sim.measure() as receipt:
        result = getattr(x, name)()
        again = getattr(sim.xp, name)(x)
    assert (receipt.d2h_copies, receipt.waits) == (0, 0)
    assert sim.owns(result)
    assert result.shape == ()
    expected = getattr(np, name)(np.array([[1, 2], [3, 4]], np.float32))
    assert sim.to_host(result) == expected == sim.to_host(again)
    assert result.dtype == expected.dtype


def test_index_arrays_wrap_round(sim):
    x = sim.asarray([10.0, 20.0, 30.0])
    index = sim.asarray(np.array([1, 3, -1, 7]))
    assert sim.to_host(x[index]).tolist() == [20.0, 10.0, 30.0, 20.0]
    assert sim.to_host(sim.xp.take(x, index)).tolist() == [20.0, 10.0, 30.0, 20.0]
    x[sim.asarray(np.array([4]))] = 5.0
    assert sim.to_host(x).tolist() == [10.0, 5.0, 30.0]
    with pytest.raises(IndexError):
        x[3]


def test_adding_to_repeated_indices_keeps_one_of_them(sim):
    """D-09: the trap that nnlab.tensor.scatter_add is for."""
    total = sim.xp.zeros((3, 2), dtype="float32")
    total[sim.asarray(np.array([2, 0, 1, 0]))] += sim.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
    assert sim.to_host(total).tolist() == [[7.0, 8.0], [5.0, 6.0], [1.0, 2.0]]


@pytest.mark.parametrize("matrix", [[[0.0]], [[1.0, 2.0], [2.0, 4.0]]])
def test_singular_matrices_give_no_error_but_no_numbers_either(sim, matrix):
    a = sim.asarray(matrix)
    assert not np.isfinite(sim.to_host(sim.xp.linalg.inv(a))).any()
    assert not np.isfinite(sim.to_host(sim.xp.linalg.solve(a, a))).any()


def test_solve(sim):
    x = sim.xp.linalg.solve(sim.asarray([[2.0, 1.0], [1.0, 3.0]]), sim.asarray([3.0, 5.0]))
    np.testing.assert_allclose(sim.to_host(x), [0.8, 1.4], rtol=1e-6)


READS = {
    "float": float,
    "int": int,
    "bool": bool,
    "item": lambda x: x.item(),
    "repr": repr,
    "str": str,
    "format": lambda x: f"{x:.2f}",
    "tolist": lambda x: x.tolist(),
    "if": lambda x: 1 if x else 0,
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_reads_are_counted_as_one_copy_and_one_wait(sim, read):
    x = sim.asarray(np.float32(2.5))
    with sim.measure() as receipt:
        read(x)
    assert (receipt.d2h_copies, receipt.d2h_bytes, receipt.waits, receipt.syncs) == (1, 4, 1, 0)
    assert receipt.launches == 0


def test_counters(sim):
    x = sim.asarray([1.0, 2.0])
    with sim.measure() as receipt:
        y = x * 2.0 + 1.0
        total = y.sum()
        sim.to_host(total)
        float(total)
        sim.synchronize()
    assert (receipt.launches, receipt.d2h_copies, receipt.syncs, receipt.waits) == (3, 2, 1, 3)


def test_a_value_larger_than_one_element_is_no_number(sim):
    with pytest.raises(ValueError, match=r"\(2,\)"):
        float(sim.asarray([1.0, 2.0]))


def test_device_arrays_are_not_pickled_but_copied(sim):
    x = sim.asarray([1.0])
    with pytest.raises(TypeError, match="to_host"):
        pickle.dumps(x)
    twin = copy.deepcopy(x)
    twin += 1.0
    assert float(x[0]) == 1.0


@pytest.mark.parametrize("name", ["fft", "percentile", "histogram", "savetxt"])
def test_what_is_not_supported_says_so(sim, name):
    with pytest.raises(AttributeError, match=f"does not support numpy.{name}.*to_host"):
        getattr(sim.xp, name)


@pytest.mark.parametrize("value", [[1.0], "1", None])
def test_lists_and_strings_are_no_operands(sim, value):
    with pytest.raises(TypeError, match="asarray"):
        sim.asarray([1.0]) + value


@pytest.mark.parametrize(
    ("use", "said", "unsaid"),
    [
        (np.tanh, "use backend.xp.tanh(...), or take", "linalg"),
        (np.linalg.norm, "use backend.xp.linalg.norm(...), or take", "xp.norm"),
        (np.median, "to_host", "xp.median"),
        (lambda x: x.argsort(), "use backend.xp.argsort(...), or take", "linalg"),
        (lambda x: x.flat, "'flat', though a NumPy array has", "xp.flat"),
        (lambda x: x.get(), "backend.to_host(array)", "xp.get"),
        (lambda x: backend_of(x).xp.add.reduce(x), "sum, prod, max, min", "object has no attribute"),
    ],
)
def test_the_cure_names_only_functions_that_exist(sim, use, said, unsaid):
    with pytest.raises((TypeError, AttributeError)) as caught:
        use(sim.asarray([1.0, 2.0]))
    assert said in str(caught.value)
    assert unsaid not in str(caught.value)


@pytest.mark.parametrize("key", [True, False, 1.0, "x", (True, slice(None)), np.True_])
def test_what_is_no_index_is_refused_and_changes_nothing(sim, key):
    x = sim.asarray([[1.0, 2.0]])
    with pytest.raises(IndexError, match="an index is a whole number"):
        x[key]
    with pytest.raises(IndexError, match="an index is a whole number"):
        x[key] = 9.0
    assert x.tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("value", ["text", ["a", "b"], None, [{}]])
def test_no_door_lets_in_what_is_no_number(sim, value):
    for door in (sim.asarray, sim.xp.asarray, sim.xp.array):
        with pytest.raises(TypeError, match="a GPU array holds numbers"):
            door(value)


@pytest.mark.parametrize("count", [-1, 1.5, "1G", True])
def test_memory_is_counted_in_whole_bytes(sim, count):
    for ask in (sim.allocate, lambda count: nnlab.backend("sim", memory=count)):
        with pytest.raises(ValueError, match="whole bytes"):
            ask(count)
    assert sim.memory().used == 0


@pytest.mark.parametrize("axis", [0, 5, (0, 1)])
def test_a_mean_along_an_axis_that_is_not_there_is_refused(sim, axis):
    with pytest.raises(np.exceptions.AxisError):
        sim.asarray(3.0).mean(axis=axis)
