"""The exercises of lesson 11: what the host pays for a step, and a step that can be captured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nnlab.backends import backend
from nnlab.errors import CaptureError
from nnlab.lessons.dispatch import weights
from nnlab.lessons.exercises import exercise, finished

Function = Callable[..., Any]
HOST = {"one by one": 30 * 11.6, "graph": 6.9, "loop of 1,000 steps": 6.9 / 1000}
ROOM = 0.1  # rounding is welcome
USUAL = {
    "one by one": "thirty launches at 11.6 µs each",
    "graph": "one launch a step, at 6.9 µs",
    "loop of 1,000 steps": "one launch of 6.9 µs, shared by a thousand steps",
}


@exercise("11.predict", right="Launches times price. Now see what the clock says.")
def predict(value: dict[str, float]) -> str | None:
    """Fill in the dictionary: how many µs a step does each method cost the host, by the two prices above?"""
    missing = [name for name in HOST if name not in value]
    if missing:
        return f"{missing[0]!r} is missing."
    for name, right in HOST.items():
        yours = float(finished(value[name]))
        if abs(yours - right) > ROOM * right:
            return f"{name!r}: {USUAL[name]}, not {yours:g}."
    return None


@exercise("11.denoise", right="It records, and each replay works on what lies in the buffers by then.")
def denoise(value: Function) -> str | None:
    """Write denoise(home, x, w, noise, total): add the sum of ((x + noise) @ w)^2 to total, in place."""
    b = backend("sim", dtype="float64")
    host_x, host_w = np.arange(6.0).reshape(2, 3), np.linspace(-1, 1, 12).reshape(3, 4)
    x, w, noise, total = b.asarray(host_x), b.asarray(host_w), b.asarray(np.zeros((2, 3))), b.asarray(np.zeros(1))
    answer = value(b, x, w, noise, total)
    if answer is ... or b.to_host(total)[0] == 0:
        finished(answer)
        return "total is as it was. Change it in place: total += ..."
    total.fill(0.0)
    try:
        with b.capture() as graph:
            value(b, x, w, noise, total)
    except CaptureError as error:
        return f"It cannot be captured: {error}."
    wanted = 0.0
    for shift in (0.0, 0.5):
        noise.fill(shift)
        graph.replay()
        wanted += float((((host_x + shift) @ host_w) ** 2).sum())
    found = float(b.to_host(total)[0])
    if not np.isclose(found, wanted):
        return f"After two replays, with noise 0 and 0.5, total should be {wanted:.3f}, yours is {found:.3f}."
    return None


@exercise("11.prepare", right="The weights are those of so many steps.")
def prepare(value: Function) -> str | None:
    """Write prepare(home, x, y, net): it returns run(steps), which takes so many training steps on net, in place."""
    b = backend("sim")
    sizes, steps = (5, 4, 3, 2), 3
    rng = np.random.default_rng(3)
    host_x, host_y = rng.uniform(0, 1, (6, 5)), rng.uniform(0, 1, (6, 2))
    x, y, net, start = b.asarray(host_x), b.asarray(host_y), weights(b, sizes), weights(b, sizes)
    wanted = [b.to_host(w).astype(np.float64) for w in start]
    run = finished(value(b, x, y, net))
    if not callable(run):
        return f"prepare should return a function of the number of steps, not {type(run).__name__}."
    if not all(np.array_equal(b.to_host(w), b.to_host(v)) for w, v in zip(net, start, strict=True)):
        return "prepare itself should leave the weights as they are. A recording runs nothing; a call of step does."
    run(steps)
    for _ in range(steps):
        _step(host_x, host_y, wanted)
    if not all(np.allclose(b.to_host(w), v, rtol=0, atol=1e-6) for w, v in zip(net, wanted, strict=True)):
        return f"After run({steps}) the weights are not those of {steps} steps."
    return None


def _step(x: np.ndarray, y: np.ndarray, net: list[np.ndarray], rate: float = 1e-4) -> None:
    """The lesson's step on the host."""
    values, slopes = [x], []
    for place, w in enumerate(net):
        z = values[-1] @ w
        slopes.append(np.where(z > 0, 1.0, 0.01) if place < len(net) - 1 else np.ones_like(z))
        values.append(z * slopes[-1])
    g = 2.0 * (values[-1] - y)
    for place in reversed(range(len(net))):
        g = g * slopes[place]
        slope, g = values[place].T @ g, g @ net[place].T
        net[place] -= rate * slope
