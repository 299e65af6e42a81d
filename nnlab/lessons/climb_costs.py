"""What a way of the staircase costs on a modelled card, kernel by kernel, without a run: lesson 16 and its widget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from nnlab.backends.sim.device import Device, load_device
from nnlab.engines.chain import LOSS_NAMES, Chain
from nnlab.engines.fused_plan import Card, Plan, Run, plans
from nnlab.engines.fused_tile import TilePlan, tile_plan
from nnlab.lessons.climb import Way

ITEM = 4  # bytes of a float32


@dataclass(frozen=True)
class Machine:
    """A card's roofs, operations and bytes a second, and what its fused kernels may use.

    float32, tf32: of products. memory: of the card's memory.
    """

    title: str
    float32: float
    tf32: float
    memory: float
    card: Card

    def roof(self, products: int | None) -> float:
        """Operations a second: in float32 (None), in TF32 (1), or three TF32 products for one of float32 (3)."""
        return self.float32 if products is None else self.tf32 / products


# H200: 67 TFLOP/s is NVIDIA's figure, TF32 cuBLAS's rate at 8192 cubed, memory the rate of a large copy, both measured.
# Laptop: published figures of an RTX 4060 Laptop; its tensor cores take TF32 no faster than its other units float32.
MACHINES = {
    "h200": Machine("H200", 67e12, 407e12, 4.3e12, Card((9, 0), 232_448, 132)),
    "laptop": Machine("RTX 4060 Laptop", 11.6e12, 11.6e12, 0.256e12, Card((8, 9), 101_376, 24)),
}


class Kernel(NamedTuple):
    """kind: what a launch of it costs the host. seconds: of the device. nbytes: read and written, each array once.

    operations: of a product, 2 for a multiplication with its addition. makes: the bytes of each new array.
    """

    name: str
    kind: str
    seconds: float
    nbytes: int
    operations: int = 0
    makes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Cost:
    """A step: counts of its receipt, bytes of memory traffic, operations of its products, seconds of host and device.

    roof: operations a second that its kind of product cannot exceed on its card. memory: bytes a second, likewise.
    """

    launches: float
    allocations: int
    nbytes: int
    operations: int
    host: float
    device: float
    roof: float
    memory: float
    together: bool = False  # the host waits for the device at each allocation, so their times add up

    @property
    def seconds(self) -> float:
        """Modelled: the longer of host and device."""
        return self.host + self.device if self.together else max(self.host, self.device)

    @property
    def bounds(self) -> dict[str, float]:
        """The least seconds that launches, memory and arithmetic allow, each alone."""
        arithmetic = self.operations / self.roof
        return {"launches": self.host, "memory": self.nbytes / self.memory, "arithmetic": arithmetic}

    @property
    def rules(self) -> str:
        """Which bound is the highest."""
        return max(self.bounds, key=self.bounds.__getitem__)


def operations(sizes: Sequence[int], rows: int) -> int:
    """In a step's products: three a layer, but the first passes no slope on."""
    products = [2 * rows * m * n for m, n in pairwise(sizes)]
    return 3 * sum(products) - products[0]


def kernels(device: Device, sizes: Sequence[int], rows: int, *, sums: bool, fused: bool) -> list[Kernel]:
    """Each kernel of the step, in order: `cub_step.step`, or with `fused` that of `climb`."""
    layers = list(pairwise(sizes))
    found: list[Kernel] = []

    def elementwise(name: str, reads: Sequence[int], writes: Sequence[int], *, new: bool = True) -> None:
        moved = ITEM * (sum(reads) + sum(writes))
        found.append(
            Kernel(name, "ufunc", device.elementwise(moved), moved, 0, tuple(ITEM * n for n in writes) if new else ())
        )

    def product(rows: int, inner: int, columns: int) -> None:
        moved = ITEM * (rows * inner + inner * columns + rows * columns)
        seconds = device.product(rows, inner, columns, ITEM)
        made = (ITEM * rows * columns,)
        found.append(Kernel("matmul", "matmul", seconds, moved, 2 * rows * inner * columns, made))

    def column_sums(columns: int) -> None:
        if sums:
            product(1, rows, columns)
            found[-1] = found[-1]._replace(operations=0)  # counted as what they are: sums
            return
        moved = ITEM * (rows * columns + columns)
        whole = device.elementwise(ITEM * rows)  # a single column is summed as quickly as any vector
        seconds = whole if columns == 1 else device.sum_rows(rows, columns)
        found.append(Kernel("sum", "reduction", seconds, moved, 0, (ITEM * columns,)))

    def descend(n: int) -> None:
        if fused:
            elementwise("descend", [n, n], [], new=False)
            return
        elementwise("multiply", [n], [n])
        elementwise("subtract", [n, n], [n], new=False)

    def chain(names: str, n: int, first: Sequence[int] = ()) -> None:
        for name in names.split():
            elementwise(name, [n, *first], [n])
            first = ()

    for place, (inputs, outputs) in enumerate(layers):
        n = rows * outputs
        product(rows, inputs, outputs)
        if fused:
            elementwise("bias_sigmoid" if place == len(layers) - 1 else "bias_tanh", [n, outputs], [n])
        else:
            rest = "add multiply tanh multiply add" if place == len(layers) - 1 else "add tanh"
            chain(rest, n, [outputs])
    last = rows * sizes[-1]
    if fused:
        elementwise("output_error", [last, last], [last, last])
    else:
        elementwise("subtract", [last, last], [last])
        elementwise("multiply", [last], [last])
        elementwise("multiply", [last, last], [last])
        elementwise("subtract", [last], [last])
        elementwise("multiply", [last, last], [last])
    for place, (inputs, outputs) in reversed(list(enumerate(layers))):
        product(inputs, rows, outputs)
        column_sums(outputs)
        if place:
            n = rows * inputs
            product(rows, outputs, inputs)
            if fused:
                elementwise("tanh_back", [n, n], [n])
            else:
                elementwise("multiply", [n, n], [n])
                elementwise("subtract", [n], [n])
                elementwise("multiply", [n, n], [n])
        descend(inputs * outputs)
        descend(outputs)
    if not fused:
        elementwise("multiply", [last, last], [last])
    found.append(Kernel("sum", "reduction", device.elementwise(ITEM * last), ITEM * last + ITEM, 0, (ITEM,)))
    elementwise("divide", [1], [1], new=False)
    return found


def cost(way: Way, machine: str, sizes: Sequence[int], rows: int) -> Cost | None:
    """A way of the device on a modelled card, "h200" or "laptop"; None where the fused engine's tile does not fit."""
    device, roofs = load_device(machine), MACHINES[machine]
    if way.engine is not None:
        return _fused(way, machine, device, sizes, rows)
    found = kernels(device, sizes, rows, sums=way.sums, fused=way.fused)
    made = [nbytes for kernel in found for nbytes in kernel.makes]
    nbytes, busy = sum(kernel.nbytes for kernel in found), sum(kernel.seconds for kernel in found)
    work = operations(sizes, rows)
    if way.graph:
        gap = device.kernel["graph_gap"] - device.kernel["floor"]
        host, busy = device.host["graph"], busy + gap * len(found)
        return Cost(1, 0, nbytes, work, host, busy, roofs.float32, roofs.memory)
    host = sum(device.host[kernel.kind] for kernel in found)
    allocations = len(made) if way.pool == "none" else 0
    if allocations:
        host += sum(device.driver_block(-(-size // 512) * 512) for size in made)
    else:
        host += len(made) * float(device.allocate[way.pool])
    if way.read:
        host += device.copy["item_call"]
    together = way.pool == "none"
    return Cost(len(found), allocations, nbytes, work, host, busy, roofs.float32, roofs.memory, together)


def _fused(way: Way, machine: str, device: Device, sizes: Sequence[int], rows: int) -> Cost | None:
    roofs, products = MACHINES[machine], {"fused": 3, "fused-tf32": 1}[str(way.engine)]
    plan = _plan(roofs.card, sizes, rows, products)
    if plan is None:
        return None
    parameters = sum((m + 1) * n for m, n in pairwise(sizes))
    data = rows * (sizes[0] + sizes[-1])
    slower = MACHINES["h200"].roof(products) / roofs.roof(products)  # plans are timed on an H200
    launches = 1 / plan.slice_steps
    if isinstance(plan, TilePlan):  # each block hands its sums over; the weights are read and written once
        launches = 1  # of a step alone, as it is counted and timed here
        nbytes = ITEM * (data + 2 * plan.blocks * plan.sums + 2 * parameters)
        roof = roofs.roof(products)
    else:  # everything stays in shared memory, for many steps
        nbytes, roof = ITEM * data // plan.slice_steps, roofs.float32
    host = launches * device.host["raw_kernel"]
    # a step that only waits for its launches is not slower on a slower card
    busy = plan.step_seconds * (slower if plan.step_seconds > 1.1 * host else 1.0)
    return Cost(launches, 0, nbytes, operations(sizes, rows), host, busy, roof, roofs.memory)


def _plan(card: Card, sizes: Sequence[int], rows: int, products: int) -> Plan | None:
    """The fused engine's plan with `tile`, or with one of its loops; its other kernels are not modelled here."""
    layers = len(sizes) - 1
    chain = Chain(tuple(sizes), (1,) * layers, ("tanh",) * (layers - 1) + ("sigmoid",), (0.0,) * layers)
    run = Run(rows=rows, batched=False, loss=LOSS_NAMES.index("mse"), optimizer=0, memories=0, settings={})
    tile = tile_plan(chain, run, card, products=products)
    if tile is not None or products == 1:
        return tile
    return next(plans(chain, run, card), None)
