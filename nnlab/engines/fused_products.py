"""The fused engine's kernels for wide networks: their arrays, and the launches of a step."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from nnlab.backends import Array
from nnlab.engines.fused import Loop
from nnlab.engines.fused_gemm import DEPTH, END_THREADS, TEAM, TEAMS, GemmPlan
from nnlab.optim import TrainState

UPDATE_THREADS, MANY_BLOCKS = 256, 32  # as in update.cuh


class PartialSums(NamedTuple):
    """Where blocks left their parts of a gradient's sums: the first one's, how many blocks, and how the numbers lie."""

    first: Array
    blocks: int
    distance: int  # numbers from a block's to the next one's
    row_step: int
    column_step: int = 1


class Products(Loop):
    """Buffers for every level between inputs and outputs, and the kernels of gemm.cu, queued for each step."""

    plan: GemmPlan

    @abstractmethod
    def kernel(self, name: str, blocks: tuple[int, ...], threads: int, floats: int) -> Callable[..., None]:
        """A kernel of the plan's source, to be called with arrays. floats: of shared memory."""

    @abstractmethod
    def address(self, array: Array) -> int:
        """Where the array begins."""

    def __init__(self, plan: GemmPlan, state: TrainState, x: Array, y: Array) -> None:
        self.plan, self.state = plan, state
        self.backend = b = state.model.backend
        xp = b.xp
        self.x, self.y = xp.ascontiguousarray(x), xp.ascontiguousarray(y)
        self.no_rows = xp.zeros(1, np.int32)
        self.nothing = xp.zeros(4, np.float32)
        hidden = range(1, len(plan.padded) - 1)
        self.levels = {i: xp.empty((plan.padded_rows, plan.padded[i]), np.float32) for i in hidden}
        self.slopes = {i: xp.empty_like(self.levels[i]) if plan.has_slopes(i - 1) else self.nothing for i in hidden}
        self.deltas = {
            i: self.slopes[i] if plan.has_slopes(i - 1) else xp.empty_like(self.levels[i]) for i in plan.delta_levels
        }
        last = len(plan.chain.biases) - 1
        self.weights = [xp.zeros(plan.padded[i : i + 2], np.float32) for i in range(last + 1)]
        self.turned = {i: xp.zeros(plan.padded[i : i + 2][::-1], np.float32) for i in plan.middle}
        self.biases = [xp.zeros(width, np.float32) for width in plan.padded[1:]]
        blocks, inputs, first = plan.cluster, plan.chain.widths[0], plan.padded[1]
        self.first_sums = xp.empty((plan.first_blocks, inputs + 1, first), np.float32)
        self.head_sums = xp.empty((blocks, plan.head_sums), np.float32)
        splits = {i: plan.splits[plan.same("weights", i)] for i in plan.middle}
        self.sums = {i: xp.empty((splits[i], *plan.padded[i : i + 2]), np.float32) for i in plan.middle}
        bias_blocks = {i: plan.rows_at_once(i + 1) for i in plan.middle if i + 1 in plan.middle}
        self.bias_sums = {i: xp.empty((n, plan.padded[i + 1]), np.float32) for i, n in bias_blocks.items()}
        self.tensors = self._tensors()
        self._make_kernels()

    def launch(self, losses: Array, factors: Array, rows: Array | None) -> None:
        self.kernels["load"](self.tensors)  # the model may have been changed since the last slice
        for step in range(len(losses)):
            self._step(losses[step : step + 1], factors[step], self.no_rows if rows is None else rows[step])

    def _step(self, loss: Array, factors: Array, batch: Array) -> None:
        plan, kernels = self.plan, self.kernels
        levels, slopes, deltas, last = self.levels, self.slopes, self.deltas, len(plan.chain.biases) - 1
        kernels["first_layer"](self.x, batch, self.weights[0], self.biases[0], levels[1], slopes[1])
        for i in plan.middle:
            self.forward[i](levels[i], self.turned[i], self.biases[i], levels[i + 1], slopes[i + 1])
        kernels["head"](
            self.y,
            batch,
            self.weights[last],
            self.biases[last],
            levels[last],
            slopes[last],
            deltas[last],
            self.head_sums,
        )
        for i in reversed(plan.middle):
            under = slopes[i] if plan.has_slopes(i - 1) else levels[i]
            before = deltas.get(i, self.nothing)
            sums = self.first_sums if i == 1 else self.bias_sums[i - 1]
            self.backward[i](deltas[i + 1], self.weights[i], under, before, self.x, batch, sums)
        for group, tasks in self.tasks.items():
            self.gradients[group](tasks)
        if not plan.few_inputs:
            kernels["first_gradients"](self.x, batch, deltas[1], self.first_sums)
        kernels["update_all"](self.tensors, factors, loss)

    def _make_kernels(self) -> None:
        plan, kernel = self.plan, self.kernel
        padded, blocks, tensors = plan.padded, plan.cluster, len(self.tensors)
        largest = max(a * b for a, b in pairwise(plan.chain.widths))
        across = -(-largest // UPDATE_THREADS)
        self.kernels = {
            "load": kernel("load", (across, tensors - 1), UPDATE_THREADS, 0),
            "update_all": kernel("update_all", (self.update_blocks, tensors), UPDATE_THREADS, UPDATE_THREADS),
            "first_layer": kernel("first_layer", (4 * blocks, 1), END_THREADS, 0),
            "first_gradients": kernel(
                "first_gradients", (blocks, -(-(padded[0] + 1) // 4)), END_THREADS, 4 * padded[1]
            ),
            "head": kernel("head", (blocks, 1), END_THREADS, plan.head_sums),
        }
        self.forward, self.backward, self.gradients = {}, {}, {}
        for i in plan.middle:
            self.forward[i] = kernel(
                f"forward_{plan.same('forward', i)}",
                (padded[i + 1] // plan.tile(i + 1), plan.rows_at_once(i + 1)),
                TEAMS * TEAM,
                plan.product_floats(padded[i], plan.tile(i + 1)),
            )
            self.backward[i] = kernel(
                f"backward_{plan.same('backward', i)}",
                (padded[i] // plan.tile(i), plan.rows_at_once(i)),
                TEAMS * TEAM,
                plan.product_floats(padded[i + 1], plan.tile(i)),
            )
        self.tasks = {}
        for group, layers in plan.groups.items():
            self.gradients[group] = kernel(
                f"weights_{group}",
                (plan.weight_blocks(group)[0], plan.splits[group], len(layers)),
                TEAMS * TEAM,
                TEAMS * plan.stages * DEPTH * (plan.tile(group) + plan.tile(group + 1)),
            )
            self.tasks[group] = self._table(
                [[self.address(array) for array in (self.levels[i], self.deltas[i + 1], self.sums[i])] for i in layers]
            )

    def _tensors(self) -> Array:
        """The table of `Tensor`s in update.cuh, the loss last."""
        plan, state = self.plan, self.state
        last, blocks = len(plan.chain.biases) - 1, plan.cluster
        wide, outputs = plan.padded[last], plan.chain.widths[-1]
        head = self.head_sums.reshape(-1)
        rows: list[list[int]] = []
        names = iter(state.model.parameters.items())
        for i, has_bias in enumerate(plan.chain.biases):
            if i == 0:
                here = PartialSums(self.first_sums, plan.first_blocks, self.first_sums[0].size, plan.padded[1])
                bias_sums = self.first_sums[0, plan.padded[0] :]
                bias_here = PartialSums(bias_sums, plan.first_blocks, self.first_sums[0].size, 0)
            elif i == last:
                here = PartialSums(head, blocks, plan.head_sums, 1, wide)
                bias_here = PartialSums(head[(outputs + 1) * wide :], blocks, plan.head_sums, 0)
            else:
                here = PartialSums(self.sums[i], len(self.sums[i]), self.sums[i][0].size, plan.padded[i + 1])
                bias_here = PartialSums(head[outputs * wide :], blocks, plan.head_sums, 0)
                if i in self.bias_sums:
                    bias_here = PartialSums(self.bias_sums[i], len(self.bias_sums[i]), plan.padded[i + 1], 0)
            turned = self.turned.get(i)
            rows.append(self._tensor(*next(names), here, self.weights[i], turned))
            if has_bias:
                rows.append(self._tensor(*next(names), bias_here, self.biases[i], None))
        loss = PartialSums(head[(outputs + 1) * wide + outputs :], blocks, plan.head_sums, 0)
        rows.append([self.address(loss.first), 0, 0, 0, 0, 0, blocks, plan.head_sums, 1, 1, 0, 1, 0, 0])
        # As update_all deals numbers to blocks of threads.
        self.update_blocks = max(
            -(-size // (32 if many > MANY_BLOCKS else UPDATE_THREADS)) for *_, many, _, size, _, _, _, _, _ in rows
        )
        return self._table(rows)

    def _table(self, rows: list[list[int]]) -> Array:
        return self.backend.xp.asarray(np.array(rows, np.int64))

    def _tensor(self, name: str, values: Array, sums: PartialSums, copy: Array, turned: Array | None) -> list[int]:
        optimizer = self.state.optimizer
        memories = [self.address(optimizer.arrays[f"{memory}.{name}"]) for memory in optimizer.memories]
        places = [sums.first, values, copy]
        return [
            *(self.address(array) for array in places),
            0 if turned is None else self.address(turned),
            *[*memories, 0, 0][:2],
            sums.blocks,
            sums.distance,
            values.size,
            values.shape[-1],
            sums.row_step,
            sums.column_step,
            copy.shape[-1],
            0 if turned is None else turned.shape[-1],
        ]
