"""Rows by number: no silent wrap-round, no lost repeats (case D-09)."""

from __future__ import annotations

import numpy as np
import pytest

import nnlab
from nnlab.errors import MixedBackendError, ShapeError
from nnlab.tensor import scatter_add, take_rows


@pytest.mark.parametrize("where", ["list", "host", "home"])
def test_a_row_out_of_range_raises(b, where):
    def rows(numbers):
        return {"list": numbers, "host": np.array(numbers), "home": b.asarray(np.array(numbers))}[where]

    a = b.asarray([10.0, 11.0, 12.0])
    with pytest.raises(IndexError, match="row 3 is out of range"):
        take_rows(a, rows([1, 3]))
    with pytest.raises(IndexError, match="row -4 is out of range"):
        take_rows(a, rows([-4, 0]))
    with pytest.raises(IndexError, match="row 3"):
        scatter_add(a, rows([1, 3]), 1.0)
    np.testing.assert_array_equal(b.to_host(a), [10.0, 11.0, 12.0])
    np.testing.assert_array_equal(b.to_host(take_rows(a, rows([2, -3, 2]))), [12.0, 10.0, 12.0])


def test_rows_of_a_matrix(b):
    a = b.asarray(np.arange(6.0).reshape(3, 2))
    np.testing.assert_array_equal(b.to_host(take_rows(a, [2, 0])), [[4.0, 5.0], [0.0, 1.0]])
    assert take_rows(a, []).shape == (0, 2)


def test_a_row_named_twice_gets_both(b):
    target = b.asarray(np.zeros((3, 2)))
    values = b.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
    assert scatter_add(target, [0, 2, 0, 1], values) is target
    np.testing.assert_array_equal(b.to_host(target), [[6.0, 8.0], [7.0, 8.0], [3.0, 4.0]])


def test_many_repeats(b):
    target = b.asarray(np.zeros(2))
    scatter_add(target, np.arange(10_000) % 2, 1)
    np.testing.assert_array_equal(b.to_host(target), [5000.0, 5000.0])


def test_wrong_shapes_and_types(b):
    target = b.asarray(np.zeros((3, 2)))
    with pytest.raises(ShapeError, match=r"needs values \(2, 2\), not \(2,\)"):
        scatter_add(target, [0, 1], b.asarray([1.0, 2.0]))
    with pytest.raises(TypeError, match="integers, not float64"):
        take_rows(target, [0.0, 1.0])
    with pytest.raises(TypeError, match="integers, not bool"):
        take_rows(target, [True, False, True])
    with pytest.raises(ShapeError, match="no rows"):
        take_rows(b.asarray(1.0), [0])


def test_mixed_homes():
    sim = nnlab.backend("sim")
    with pytest.raises(MixedBackendError, match="values lives on the host"):
        scatter_add(sim.asarray([1.0]), [0], np.ones(1, "float32"))
    with pytest.raises(MixedBackendError):
        take_rows(np.ones(3), sim.asarray(np.array([0])))


def test_a_number_of_any_kind_is_added(b):
    for number in (2, 2.0, np.float32(2), np.int64(2)):
        assert b.to_host(scatter_add(b.asarray([1.0, 1.0]), [1, 1], number)).tolist() == [1.0, 5.0]


def test_fractions_are_not_cut_to_whole_numbers_in_silence(b):
    target = b.asarray(np.array([1, 1]))
    for values in (1.5, b.asarray([1.5])):
        with pytest.raises(TypeError, match=r"into int64 would cut"):
            scatter_add(target, [0], values)
    assert b.to_host(target).tolist() == [1, 1]
