"""The network of lesson 11, and what its training step costs on a modelled GPU, kernel by kernel, without a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from nnlab.backends import Array, Backend
from nnlab.backends.sim.device import Device
from nnlab.engines.chain import LOSS_NAMES, Chain
from nnlab.engines.fused_plan import Card, Run, plans

SIZES = (784, 256, 128, 10)
ITEM = 4  # bytes of a float32


def weights(home: Backend, sizes: Sequence[int] = SIZES) -> list[Array]:
    """Xavier uniform weights (inputs, outputs), drawn on the host, the same at every call."""
    rng = np.random.default_rng(0)
    edges = [((m, n), (6 / (m + n)) ** 0.5) for m, n in pairwise(sizes)]
    return [home.asarray(rng.uniform(-edge, edge, shape)) for shape, edge in edges]


def batch(home: Backend, rows: int, sizes: Sequence[int] = SIZES) -> tuple[Array, Array]:
    """Inputs (rows, sizes[0]) and targets (rows, sizes[-1]) between 0 and 1, the same at every call."""
    rng = np.random.default_rng(1)
    return home.asarray(rng.uniform(0, 1, (rows, sizes[0]))), home.asarray(rng.uniform(0, 1, (rows, sizes[-1])))


class Kernel(NamedTuple):
    """kind: what a launch of it costs the host. seconds: of the device. makes: whether its result is a new array."""

    kind: str
    seconds: float
    makes: bool = True


@dataclass(frozen=True)
class Cost:
    """Seconds a step: what the host needs for its launches, and the device for its kernels. The longer one counts."""

    launches: float
    host: float
    device: float

    @property
    def seconds(self) -> float:
        return max(self.host, self.device)


def kernels(device: Device, sizes: Sequence[int], rows: int) -> list[Kernel]:
    """Each kernel of the lesson's step: leaky ReLU between layers, sum of squares, SGD in place."""
    layers = list(pairwise(sizes))
    found: list[Kernel] = []

    def elementwise(*nbytes: int, kind: str = "ufunc", makes: bool = True) -> None:
        found.append(Kernel(kind, device.elementwise(sum(nbytes)), makes))

    def product(rows: int, inner: int, columns: int) -> None:
        found.append(Kernel("matmul", device.product(rows, inner, columns, ITEM)))

    def leaky(size: int) -> None:
        numbers = ITEM * size
        elementwise(numbers, size)  # compare: the result is a byte each
        elementwise(numbers, numbers)
        elementwise(size, numbers, numbers, numbers)  # choose

    for place, (inputs, outputs) in enumerate(layers):
        product(rows, inputs, outputs)
        if place < len(layers) - 1:
            leaky(rows * outputs)
    last = ITEM * rows * sizes[-1]
    elementwise(last, last, last)  # the error
    elementwise(last, last, last)  # times itself
    elementwise(last, ITEM, kind="reduction")
    elementwise(last, last)
    for place, (inputs, outputs) in reversed(list(enumerate(layers))):
        product(inputs, rows, outputs)
        if place:
            product(rows, outputs, inputs)
            leaky(rows * inputs)
        weights = ITEM * inputs * outputs
        elementwise(weights, weights)
        elementwise(weights, weights, weights, makes=False)
    return found


def costs(device: Device, sizes: Sequence[int], rows: int) -> dict[str, Cost | None]:
    """The step asked for launch by launch, as a graph, and in a loop kernel; None where no such kernel fits."""
    step = kernels(device, sizes, rows)
    host, allocation = device.host, device.allocate["default"]
    gap = device.kernel["graph_gap"] - device.kernel["floor"]
    asked = sum(host[kernel.kind] + allocation * kernel.makes for kernel in step)
    busy = sum(kernel.seconds for kernel in step)
    one_by_one = Cost(len(step), asked, busy)
    graph = Cost(1, host["graph"], busy + gap * len(step))
    return {"one by one": one_by_one, "graph": graph, "loop kernel": _loop(device, sizes, rows)}


def _loop(device: Device, sizes: Sequence[int], rows: int) -> Cost | None:
    layers = len(sizes) - 1
    chain = Chain(tuple(sizes), (0,) * layers, ("leaky_relu",) * (layers - 1) + ("linear",), (0.0,) * layers)
    run = Run(rows=rows, batched=False, loss=LOSS_NAMES.index("sse"), optimizer=0, memories=0, settings={})
    plan = next(plans(chain, run, Card((9, 0), 232_448)), None)
    if plan is None:
        return None
    launches = 1 / plan.slice_steps
    return Cost(launches, launches * device.host["raw_kernel"], plan.step_seconds)
