"""How the graph engine makes a step of few kernels, where the network is a chain of layers that step.cu knows.

A product of each layer forwards, one of each but the first backwards, and all gradients in one launch; where rows of
a gradient are dealt out among blocks, another launch adds their sums up. The plan depends on sizes alone, so the same
run has the same bits again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from nnlab.backends import Array
from nnlab.engines.chain import Chain, chain
from nnlab.engines.fused_plan import KERNELS, Run, constants, run_of
from nnlab.engines.graph_cuts import THREADS, Cut, best_cut, gradient_cuts, gradient_seconds, update_seconds
from nnlab.errors import EngineCannot
from nnlab.optim import TrainState

SOURCES = ("network.cuh", "cluster.cuh", "product.cuh", "step.cu")
FEW_PARAMETERS = 65_536  # below, a block of update_all has 32 of them, as in step.cu


class Launch(NamedTuple):
    """A kernel of the step: its name in step.cu, the layer it is for, its size, roughly its seconds on an H200."""

    kernel: str
    layer: int
    blocks: int
    shared_bytes: int
    seconds: float

    @property
    def is_template(self) -> bool:
        """Whether step.cu has it once for each layer."""
        return self.kernel in ("forward", "backward")

    @property
    def name(self) -> str:
        """As the compiler knows it."""
        return f"{self.kernel}<{self.layer}>" if self.is_template else self.kernel


@dataclass(frozen=True)
class StepPlan:
    """The kernels of one step, and how their products are cut.

    splits: for each layer, among how many blocks the rows of its gradient are dealt out.
    """

    chain: Chain
    run: Run
    forward: tuple[Cut, ...]
    backward: tuple[Cut, ...]  # the first layer's is not used
    gradient: tuple[Cut, ...]
    splits: tuple[int, ...]

    @cached_property
    def launches(self) -> list[Launch]:
        """In the order in which they run."""
        rows, widths = self.run.rows, self.chain.widths
        found = []

        def product(kernel: str, layer: int, cut: Cut, across: int, terms: int) -> None:
            seconds = cut.seconds(rows, across, terms)
            found.append(Launch(kernel, layer, cut.blocks(rows, across), cut.shared_bytes, seconds))

        for layer, cut in enumerate(self.forward):
            product("forward", layer, cut, widths[layer + 1], widths[layer])
        for layer in range(len(self.splits) - 1, 0, -1):
            product("backward", layer, self.backward[layer], widths[layer], widths[layer + 1])
        pairs = list(pairwise(widths))
        blocks = sum(
            cut.blocks(*pair) * splits for pair, cut, splits in zip(pairs, self.gradient, self.splits, strict=True)
        )
        shared = max(cut.shared_bytes for cut in self.gradient)
        found.append(Launch("gradients", 0, blocks, shared, gradient_seconds(pairs, rows, self.gradient, self.splits)))
        if max(self.splits) > 1:
            at_once = 32 if self.chain.parameters < FEW_PARAMETERS else THREADS
            blocks = -(-self.chain.parameters // at_once) + 1  # one ends the step
            found.append(
                Launch("update_all", 0, blocks, 4 * THREADS, update_seconds(max(self.splits), self.chain.parameters))
            )
        return found

    @property
    def work_floats(self) -> int:
        """Of the workspace: values of the levels between, slopes, terms of the loss, parts of the gradients."""
        rows, widths, last = self.run.rows, [_quads(width) for width in self.chain.widths], self.forward[-1]
        parts = sum(_quads(splits * size) for splits, size in zip(self.splits, self._sizes, strict=True))
        return rows * (sum(widths[1:-1]) + sum(widths[1:])) + _quads(last.blocks(rows, self.chain.widths[-1])) + parts

    @property
    def _sizes(self) -> list[int]:
        """Parameters of each layer."""
        pairs = pairwise(self.chain.widths)
        return [(fan_in + bias) * fan_out for (fan_in, fan_out), bias in zip(pairs, self.chain.biases, strict=True)]

    @property
    def sizes(self) -> str:
        """The constants as the kernels' source wants them, in front of it."""
        values = constants(self.chain, self.run, 1, THREADS)
        for name, cuts in (("FORWARD", self.forward), ("BACKWARD", self.backward), ("GRADIENT", self.gradient)):
            values[f"{name}_CUTS"] = ", ".join(f"{{{', '.join(map(str, cut))}}}" for cut in cuts)
        values["SPLITS"] = ", ".join(map(str, self.splits))
        return "".join(f"#define {name} {value}\n" for name, value in values.items())

    @property
    def source(self) -> str:
        """The CUDA C of the kernels, with their sizes."""
        return self.sizes + "".join((KERNELS / name).read_text("utf-8") for name in SOURCES)


def step_plan(state: TrainState, x: Array) -> StepPlan | None:
    """The plan for a run on x, or None where it needs what step.cu does not know, or another type than float32."""
    if state.model.backend.dtype != np.float32:
        return None
    try:
        return plan_of(chain(state.model), run_of(state, x))
    except EngineCannot:
        return None


def plan_of(network: Chain, run: Run) -> StepPlan:
    """The plan whose kernels take the least time by the model."""
    pairs = list(pairwise(network.widths))
    gradient, splits = gradient_cuts(pairs, run.rows)
    return StepPlan(
        network,
        run,
        forward=tuple(best_cut(run.rows, fan_out, fan_in) for fan_in, fan_out in pairs),
        backward=tuple(best_cut(run.rows, fan_in, fan_out) for fan_in, fan_out in pairs),
        gradient=tuple(gradient),
        splits=tuple(splits),
    )


def _quads(n: int) -> int:
    return -(-n // 4) * 4
