"""Graph capture: D-08, what is refused and what is not, and that nothing runs while recording."""

from __future__ import annotations

import numpy as np
import pytest

import nnlab
from nnlab.errors import CaptureError, EngineCannot


def test_recording_runs_nothing_and_replays_work_on_the_same_buffers(sim):
    x = sim.xp.arange(10, dtype="int32")
    with sim.capture() as graph:
        x += 3
    assert sim.to_host(x).tolist() == list(range(10))
    graph.replay()
    assert sim.to_host(x).tolist() == list(range(3, 13))
    graph.replay()
    assert sim.to_host(x).tolist() == list(range(6, 16))


REFUSED = {
    "@": lambda b, x: x @ x,
    "dot": lambda b, x: b.xp.dot(x, x),
    "einsum": lambda b, x: b.xp.einsum("ij,jk->ik", x, x),
    r"float\(\)": lambda b, x: float(x[0, 0]),
    r"bool\(\)": lambda b, x: bool(x[0, 0]),
    r"repr\(\)": lambda b, x: repr(x),
    "to_host": lambda b, x: b.to_host(x),
    "asarray": lambda b, x: b.asarray([1.0]),
    "random": lambda b, x: b.xp.random.default_rng(0).random(3),
    "synchronize": lambda b, x: b.synchronize(),
    r"x\[mask\]": lambda b, x: x[x > 0],
    r"linalg\.inv": lambda b, x: b.xp.linalg.inv(x),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_captured_says_what_to_use_instead(sim, name):
    x = sim.asarray([[1.0, 2.0], [3.0, 4.0]])

    def record():
        with sim.capture():
            x.fill(9.0)
            REFUSED[name](sim, x)

    with pytest.raises(CaptureError, match=rf"{name}.* cannot be captured.*; \w+"):
        record()
    test_recording_runs_nothing_and_replays_work_on_the_same_buffers(sim)  # the stream still works
    assert sim.to_host(x).tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_a_generator_made_before_the_capture_is_refused_too(sim):
    rng = sim.xp.random.default_rng(0)
    with pytest.raises(CaptureError, match="random draw"), sim.capture():
        rng.standard_normal(3)


def test_backend_matmul_can_be_captured(sim):
    x, out = sim.asarray([[1.0, 2.0], [3.0, 4.0]]), sim.xp.zeros((2, 2), dtype="float32")
    with sim.capture() as graph:
        sim.matmul(x, x, transpose_b=True, out=out)
        out += 1.0
    assert float(out.sum()) == 0.0
    graph.replay()
    np.testing.assert_array_equal(sim.to_host(out), np.array([[1, 2], [3, 4]]) @ np.array([[1, 3], [2, 4]]) + 1.0)


CAPTURED = {
    "new array": lambda xp, x, i: xp.tanh(x) * 2.0,
    "where": lambda xp, x, i: xp.where(x > 0, x, 0.5),
    "where=": lambda xp, x, i: xp.add(x, x, where=x > 0, out=xp.zeros_like(x)),
    "sum": lambda xp, x, i: x.sum(axis=0),
    "sum out": lambda xp, x, i: xp.sum(x, axis=0, out=xp.zeros(3, dtype="float32")),
    "mean": lambda xp, x, i: x.mean(),
    "var": lambda xp, x, i: x.var(axis=0),
    "take": lambda xp, x, i: xp.take(x, i, axis=0),
    "rows": lambda xp, x, i: x[i],
    "concatenate": lambda xp, x, i: xp.concatenate([x, x]),
    "copy": lambda xp, x, i: x.T.copy().ravel(),
    "astype": lambda xp, x, i: x.astype("float64"),
    "ones": lambda xp, x, i: xp.ones_like(x) * x,
    "eye": lambda xp, x, i: xp.eye(3, dtype="float32") * x[0],
    "arange": lambda xp, x, i: xp.arange(3) * x[0],
    "clip": lambda xp, x, i: xp.clip(x, 0.0, 1.0),
    "cumsum": lambda xp, x, i: xp.cumsum(x, axis=1),
}


@pytest.mark.parametrize("call", CAPTURED.values(), ids=CAPTURED)
def test_a_replay_computes_from_what_the_buffers_hold_then(sim, call):
    x = sim.asarray(np.zeros((2, 3)))
    index = sim.asarray(np.array([0, 0]))
    with sim.capture() as graph:
        result = call(sim.xp, x, index)
    new = sim.asarray([[0.5, -1.0, 2.0], [3.0, 4.0, -5.0]])
    x[...] = new
    index[...] = sim.asarray(np.array([1, 3]))
    graph.replay()
    np.testing.assert_array_equal(sim.to_host(result), sim.to_host(call(sim.xp, x, index)))


def test_a_new_array_has_no_values_before_the_first_replay(sim):
    x = sim.asarray([1.0, 2.0])
    with sim.capture() as graph:
        y = x + 1.0
    assert sim.to_host(y).tolist() != [2.0, 3.0]
    graph.replay()
    assert sim.to_host(y).tolist() == [2.0, 3.0]


def test_writing_parts_is_captured(sim):
    losses, place = sim.xp.zeros(4, dtype="float32"), sim.xp.zeros(1, dtype="int64")
    loss = sim.asarray([0.0])
    with sim.capture() as graph:
        loss += 1.0
        losses[place] = loss
        place += 1
    for _ in range(3):
        graph.replay()
    assert sim.to_host(losses).tolist() == [1.0, 2.0, 3.0, 0.0]


def test_a_replay_is_one_launch(sim):
    x = sim.asarray(np.ones(10))
    with sim.capture() as graph:
        for _ in range(20):
            x *= 1.0
    assert len(graph) == 20
    with sim.measure() as replayed:
        graph.replay()
    with sim.measure() as eager:
        for _ in range(20):
            x *= 1.0
    assert (replayed.launches, eager.launches) == (1, 20)
    assert replayed.seconds < eager.seconds / 4
    assert len([event for event in replayed.events if event.kind == "kernel"]) == 20


def test_a_graph_keeps_its_memory_to_itself(sim):
    x = sim.asarray(np.ones(2**16))
    before = sim.memory().used
    with sim.capture() as graph:
        between = x * 2.0
        result = between + 1.0
        del between
    assert sim.memory().used == before + 2 * 2**18  # also what the recording itself gave back
    with sim.measure() as receipt:
        other = sim.xp.zeros(2**16, dtype="float32")
    assert (receipt.allocations, receipt.pool_hits) == (1, 0)
    graph.replay()
    assert float(other.sum()) == 0.0
    assert float(result[0]) == 3.0
    del graph, result
    sim.release_memory()
    assert sim.memory().used == before + 2**18


def test_replaying_too_early_or_while_capturing_is_refused(sim):
    x = sim.asarray([1.0])
    with sim.capture() as graph:
        x += 1.0
        with pytest.raises(CaptureError, match="still being captured"):
            graph.replay()
    with pytest.raises(CaptureError, match="replay"), sim.capture():
        graph.replay()
    with pytest.raises(CaptureError, match="another capture"), sim.capture(), sim.capture():
        pass
    with sim.capture():
        pass


@pytest.mark.parametrize("ask", [lambda b: b.capture(), lambda b: b.stream(), lambda b: b.allocate(1)])
def test_the_host_is_no_device(ask):
    with pytest.raises(EngineCannot, match="sim"):
        ask(nnlab.backend("numpy"))
