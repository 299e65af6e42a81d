"""engine="auto": the engine that suits the network and where it lives, named in one line."""

from __future__ import annotations

from nnlab.backends import Array
from nnlab.engines import small
from nnlab.engines.base import Engine, Session
from nnlab.engines.chain import chain
from nnlab.engines.eager import Eager
from nnlab.engines.fused import Fused, fused_plans
from nnlab.engines.graph import CudaGraph
from nnlab.engines.graph_plan import step_plan
from nnlab.engines.tiled import Tiled
from nnlab.errors import EngineCannot
from nnlab.optim import TrainState

LONG_RUN = 20_000  # steps, each some 100 us shorter in a compiled loop, pay for loading Numba and for most compiling
EAGER_UP_TO = 512 * 1024  # bytes of the widest layer's output, from where tiles over the cores gain more than they cost
CLEARLY_SMALL = 1_000_000  # rows times weights, up to which the compiled loop is ahead of NumPy whatever the widths
# A replay against its kernels' estimates, seen on an H200 with 784-256-128-10 on 1, 32, 256 and 1,024 rows: 16.0, 21.9,
# 28.3 and 62.2 us for estimates of 10.3, 13.4, 21.2 and 47.0.
REPLAY = 1.35


class Auto(Engine):
    """Chooses when the run is prepared, prints which and why, and leaves the chosen engine's name in the state."""

    name = "auto"

    def prepare(self, state: TrainState, x: Array, y: Array) -> Session:
        chosen, why = choose(state, x, y)
        print(f"engine='auto': {chosen.name}, because {why}")
        try:
            session = chosen.prepare(state, x, y)
        except EngineCannot as reason:
            chosen = Eager()
            print(f"engine='auto': eager after all, because it takes every network ({reason})")
            session = chosen.prepare(state, x, y)
        state.engine = chosen.name
        return session


def choose(state: TrainState, x: Array, y: Array) -> tuple[Engine, str]:
    """The engine for this run, and why."""
    if state.model.backend.is_host:
        return _on_the_host(state, x, y)
    try:
        plan = fused_plans(state, x, y, products=Fused.products)[0]
    except EngineCannot as reason:
        return CudaGraph(), f"one replay a step is the least that fits ({reason})"
    step = step_plan(state, x)
    if step is not None and REPLAY * sum(launch.seconds for launch in step.launches) < plan.step_seconds:
        return CudaGraph(), f"one replay is faster for {plan.chain} on {plan.rows:,} rows than {plan}"
    return Fused(), f"{plan.chain} on {plan.rows:,} rows fits {plan}"


def _on_the_host(state: TrainState, x: Array, y: Array) -> tuple[Engine, str]:
    rows, left = state.batch_size or len(x), state.steps - state.step
    if left >= LONG_RUN and small.fits(state, x, largest=CLEARLY_SMALL):
        return Tiled(), f"{left:,} steps of {chain(state.model)} on {rows:,} rows are worth a compiled loop"
    widest = max(value.shape[-1] for value in state.model.parameters.values())
    nbytes = rows * widest * state.model.backend.dtype.itemsize
    if nbytes <= EAGER_UP_TO:
        return Eager(), f"the widest layer's {nbytes:,} bytes fit the processor's cache"
    if left < LONG_RUN and small.fits(state, x):
        return Eager(), f"{left:,} steps of so small a network are not worth compiling a loop for"
    try:
        Tiled().prepare(state, x, y)
    except EngineCannot as reason:
        return Eager(), f"it takes every network ({reason})"
    return Tiled(), f"the widest layer's {nbytes:,} bytes do not fit the processor's cache at once"
