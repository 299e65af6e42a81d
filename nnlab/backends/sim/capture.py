"""Graph capture on the simulated GPU: launches are kept instead of run, and replayed on the same buffers."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from nnlab.backends.base import Graph
from nnlab.backends.sim.gpu import Gpu
from nnlab.backends.sim.pools import DefaultPool
from nnlab.errors import CaptureError


class SimGraph(Graph):
    """A captured graph: `nodes` are its kernels (name, modelled seconds).

    Arrays made while recording lie in a pool of the graph's own, so that nothing else is ever put in their place.
    """

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self.nodes: list[tuple[str, float]] = []
        self.actions: list[Callable[[], object]] = []
        self.closed = False
        self.pool = DefaultPool(gpu)
        gpu.graph_pools.append(weakref.ref(self.pool))

    def replay(self) -> None:
        if not self.closed:
            raise CaptureError("this graph is still being captured; replay it after the with block")
        if self._gpu.graph is not None:
            self._gpu.refuse_capture("graph.replay()", "capture the steps themselves")
        for action in self.actions:
            action()
        self._gpu.launch_graph(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        return f"<graph of {len(self.nodes)} kernels on {self._gpu.home}>"


@contextmanager
def capture(gpu: Gpu) -> Iterator[SimGraph]:
    """Record what the block launches. A refused operation ends the recording; the GPU can be used on."""
    if gpu.graph is not None:
        gpu.refuse_capture("another capture", "end the first one before")
    graph = gpu.graph = SimGraph(gpu)
    try:
        yield graph
        graph.closed = True
    finally:
        gpu.graph = None
