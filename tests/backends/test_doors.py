"""Backends by name, the choice of `gpu()`, and arrays that know their home."""

from __future__ import annotations

import multiprocessing
import os
import re

import numpy as np
import pytest

import nnlab
from nnlab.errors import BackendUnavailable, MixedBackendError, UnknownName


def test_backend_by_name():
    for name in ("numpy", "sim"):
        assert nnlab.backend(name).name == name
        assert name in nnlab.available_backends()
    with pytest.raises(UnknownName, match=r"'nunpy'.*Did you mean 'numpy'"):
        nnlab.backend("nunpy")
    with pytest.raises(UnknownName, match="dtype"):
        nnlab.backend("sim", dtype="float16")
    assert nnlab.backend("numpy", dtype=np.float64).dtype == "float64"


def test_gpu_says_what_it_chose_and_why(capsys):
    b = nnlab.gpu()
    said = capsys.readouterr().out
    usable, reason = nnlab.gpu_available()
    assert b.name == ("cupy" if usable else "sim")
    assert said.count("\n") == 1
    assert b.home in said
    assert usable or reason.split(". ")[0].rstrip(".") in said


def test_two_calls_of_gpu_are_one_home():
    first, second = nnlab.gpu(), nnlab.gpu(dtype="float64")
    assert second.dtype == np.float64
    assert first.owns(second.asarray([1.0]))


def test_arrays_know_their_backend(b):
    x = b.asarray([1.0])
    found = nnlab.backends.backend_of(x)
    assert (found.name, found.dtype, found.home) == (b.name, b.dtype, b.home)
    assert found.owns(x)
    assert nnlab.backends.backend_of(b.asarray([1.0], dtype="float64")).dtype == np.float64
    with pytest.raises(TypeError, match="list is not an array"):
        nnlab.backends.backend_of([1.0])


def test_the_doors(b):
    host = np.arange(6.0).reshape(2, 3)
    x = b.asarray(host)
    assert x.dtype == b.dtype
    out = b.pinned(np.zeros((2, 3), b.dtype))
    assert b.to_host(x, out=out) is out
    np.testing.assert_array_equal(out, host)
    np.testing.assert_array_equal(b.to_host(x.T), host.T)
    assert isinstance(b.to_host(x), np.ndarray)


def test_nothing_is_copied_of_an_empty_array(sim):
    with sim.measure() as receipt:
        assert sim.to_host(sim.asarray(np.zeros((0, 3)))).shape == (0, 3)
    assert (receipt.h2d_copies, receipt.d2h_copies, receipt.waits) == (0, 0, 0)


@pytest.mark.parametrize("value", [["a"], [None], [1j], [object()]])
def test_a_device_holds_numbers(sim, value):
    with pytest.raises(TypeError, match="holds numbers"):
        sim.asarray(value)


def test_lists_of_device_arrays_are_no_host_data(sim):
    x = sim.asarray([1.0])
    with sim.measure() as receipt, pytest.raises(TypeError, match="to_host"):
        sim.asarray([x, x])
    assert receipt.d2h_copies == 0


def test_to_host_is_a_copy_of_its_own(sim):
    x = sim.asarray([1.0, 2.0])
    host = sim.to_host(x)
    host[0] = 9.0
    assert float(x[0]) == 1.0
    source = np.ones(2, np.float32)
    y = sim.asarray(source)
    source[0] = 9.0
    assert float(y[0]) == 1.0


@pytest.mark.parametrize(("a", "b_"), [("N", "N"), ("T", "N"), ("N", "T"), ("T", "T")])
def test_matmul(b, a, b_):
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((4, 3)), rng.standard_normal((3, 5))
    x, y = b.asarray(left.T if a == "T" else left), b.asarray(right.T if b_ == "T" else right)
    turned = {"transpose_a": a == "T", "transpose_b": b_ == "T"}
    product = b.matmul(x, y, **turned)
    out = b.xp.empty_like(product)
    assert b.matmul(x, y, out=out, **turned) is out
    for result in (product, out):
        np.testing.assert_allclose(b.to_host(result), left @ right, rtol=1e-5, atol=1e-6)
    with pytest.raises(nnlab.errors.ShapeError, match="inner sizes"):
        b.matmul(x, y, transpose_a=a == "N", transpose_b=b_ == "T")


def test_host_and_device_do_not_mix(sim):
    """D-02"""
    host = nnlab.backend("numpy")
    x, y = host.asarray(np.ones((2, 2))), sim.asarray(np.ones((2, 2)))
    model = nnlab.nn.mlp([2, 1], backend=sim, rng=np.random.default_rng(0))
    for name, call in {"x": lambda: model(x), "array": lambda: host.asarray(y), "b": lambda: sim.matmul(y, x)}.items():
        with pytest.raises(MixedBackendError, match=f"{name} lives on .*the host.*(asarray|to_host)"):
            call()


def in_child(connection, array):
    try:
        array + 1.0
        connection.send("no error")
    except BackendUnavailable as problem:
        connection.send(str(problem))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_use_after_a_fork_is_refused(sim):
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    child = context.Process(target=in_child, args=(there, sim.asarray([1.0])))
    child.start()
    assert re.search(r"simulated GPU \d+ .* fork.*'spawn'", here.recv())
    child.join()
    assert float((sim.asarray([1.0]) + 1.0)[0]) == 2.0


@pytest.mark.parametrize("thing", ["text", None, ["a", "b"]])
def test_a_backend_holds_numbers(b, thing):
    with pytest.raises(TypeError, match="holds numbers"):
        b.asarray(thing)


def test_a_name_that_is_no_text_is_unknown():
    with pytest.raises(UnknownName, match="unknown backend"):
        nnlab.backend(["numpy"])
