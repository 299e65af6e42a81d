"""einsum checks every index before anything is launched (case D-33)."""

from __future__ import annotations

import numpy as np
import pytest

import nnlab
from nnlab.errors import MixedBackendError, ShapeError
from nnlab.tensor import einsum


def test_a_size_1_axis_is_not_stretched(b):
    x = b.asarray(np.arange(4.0).reshape(4, 1))
    y = b.asarray([[0.0, 2.0, 4.0]])
    with b.measure() as receipt, pytest.raises(ShapeError) as caught:
        einsum("ik,jk->ij", x, y)
    assert receipt.launches in (0, None)
    reason, spec, marks = str(caught.value).splitlines()
    assert "index 'k' has size 1 in operand 1 and 3 in operand 2" in reason
    assert "not stretched" in reason
    assert "(4, 1), (1, 3)" in reason
    assert [spec[place] for place, mark in enumerate(marks) if mark == "^"] == ["k", "k"]


def test_the_index_that_disagrees_is_named(b):
    with pytest.raises(ShapeError, match=r"index 'i' has size 3 in operand 1 and 4 in operand 2") as caught:
        einsum("bi,oi->bo", b.asarray(np.zeros((12, 3))), b.asarray(np.zeros((5, 4))))
    assert "stretched" not in str(caught.value)


def test_values(b, rng):
    x, y = b.asarray([[1.0, 2.0], [3.0, 4.0]]), b.asarray([[5.0, 6.0], [7.0, 8.0]])
    np.testing.assert_array_equal(b.to_host(einsum("ik, kj -> ij", x, y)), [[19.0, 22.0], [43.0, 50.0]])
    host_a, host_b = rng.normal(size=(3, 4)).astype("float32"), rng.normal(size=(4, 5)).astype("float32")
    a, c = b.asarray(host_a), b.asarray(host_b)
    for spec, arrays in [
        ("ij->ji", (a,)),
        ("ij->i", (a,)),
        ("ij->", (a,)),
        ("ij,ij->", (a, a)),
        ("ij,jk", (a, c)),
        ("ij,jk->k", (a, c)),
        ("ij,kj->ik", (a, a)),
        ("ij,jk,ik->i", (a, c, b.asarray(host_a @ host_b))),
    ]:
        result = einsum(spec, *arrays)
        assert b.owns(result)
        truth = np.einsum(spec, *(b.to_host(array) for array in arrays))
        np.testing.assert_allclose(b.to_host(result), truth, rtol=1e-4, atol=1e-5, err_msg=spec)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("ij,jk->ik", "names 2 arrays, but 1 were given"),
        ("ijk->i", r"operand 1 has shape \(2, 3\), 2 axes, but 'ijk' names 3"),
        ("ij->k", "'k' of the result is in no operand"),
        ("ij->ii", "'i' stands twice in the result"),
        ("...i->i", "'.' names no axis"),
        ("i1->i", "'1' names no axis"),
        ("ii->i", "index 'i' has size 2 in operand 1 and 3 in operand 1"),
    ],
)
def test_a_spec_that_does_not_fit(b, spec, message):
    with pytest.raises(ShapeError, match=message):
        einsum(spec, b.asarray(np.zeros((2, 3))))


def test_mixed_homes():
    sim = nnlab.backend("sim")
    with pytest.raises(MixedBackendError, match="operand 2 lives on the host"):
        einsum("i,i->", sim.asarray([1.0]), np.ones(1, "float32"))
