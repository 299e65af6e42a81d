"""How time and memory grow with a picture: one network, square pictures from 50 to 2048 pixels a side.

`python -m nnlab.lessons.recorded.growth 4096` trains one epoch on the host in a process of its own and says what it
took, as one line of JSON.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import threading
import time
from itertools import pairwise
from typing import Any, Self

import numpy as np
import psutil

from nnlab import nn
from nnlab.backends import Array, Backend, backend
from nnlab.engines import engine as engine_by_name
from nnlab.errors import EngineCannot
from nnlab.images import pixel_centres
from nnlab.lessons.recorded.making import whole
from nnlab.nn.losses import mse
from nnlab.optim import SGD, TrainState, constant
from nnlab.training import fit

SIZES = [2, 64, 64, 128, 64, 32, 32, 32, 1]  # the articles' pyramid
SIDES = (50, 100, 200, 400, 800, 1600, 2048)
LARGE = 4096  # its memory is measured as well, on the host
ENGINES = {"numpy": ("tiled",), "cupy": ("graph", "fused")}
SAMPLE_SECONDS, SAMPLES = 0.3, 5
LOOK_EVERY = 0.005  # seconds


def record(b: Backend) -> dict[str, Any]:
    """For each engine of this home and each side: rows, seconds a step, and the bytes held at most.

    On the host the bytes are those by which a process grows that makes the data and trains one epoch; on a card they
    are the memory pool's.
    """
    found: dict[str, Any] = {"sizes": SIZES, "weights": sum(i * o for i, o in pairwise(SIZES))}
    found["engines"] = {name: [_point(b, name, side) for side in SIDES] for name in ENGINES.get(b.name, ("eager",))}
    if b.is_host:
        found["large"] = epoch_elsewhere(LARGE)
    return found


def _point(b: Backend, name: str, side: int) -> dict[str, Any]:
    point: dict[str, Any] = {"side": side, "rows": side * side}
    b.release_memory()
    try:
        session = engine_by_name(name).prepare(*run(b, side))
    except EngineCannot as reason:
        return point | {"cannot": str(reason)}
    session.advance(1)
    steps, seconds = 1, 0.0
    while seconds < SAMPLE_SECONDS / 2:
        steps *= 2 if seconds else 1
        seconds = _seconds(b, session, steps)
    samples = SAMPLES if seconds < 1 else 3
    times = [_seconds(b, session, steps) / steps for _ in range(samples)]
    nbytes = epoch_elsewhere(side)["bytes"] if b.is_host else b.memory().held
    return point | {"seconds": statistics.median(times), "bytes": nbytes}


def _seconds(b: Backend, session: Any, steps: int) -> float:
    b.synchronize()
    start = time.perf_counter()
    session.advance(steps)
    b.synchronize()
    return time.perf_counter() - start


def run(b: Backend, side: int) -> tuple[TrainState, Array, Array]:
    """The network, made ready to learn a picture of that side; what the picture shows does not matter here."""
    model = nn.mlp(SIZES, activation="tanh", output="sigmoid", backend=b, rng=np.random.default_rng(0))
    optimizer = SGD()
    optimizer.prepare(model.parameters)
    state = TrainState(model, mse, optimizer, constant(0.1), steps=10**9, log_every=1)
    x = pixel_centres(side, side, backend=b)
    return state, x, b.xp.abs(x[:, :1] * x[:, 1:])


def epoch_elsewhere(side: int) -> dict[str, Any]:
    """`epoch` in a process of its own, whose peak is nobody else's."""
    command = [sys.executable, "-m", "nnlab.lessons.recorded.growth", str(side)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    read: dict[str, Any] = json.loads(said.splitlines()[-1])
    return read


def epoch(side: int) -> dict[str, Any]:
    """One epoch with the tiled engine on the host.

    seconds: of `fit`, its last look at the loss included. data_bytes: of x and y. bytes: by how much the process grew
    at most, looked at every few milliseconds; peak_bytes: the most it ever held, imports and compiling included.
    """
    b = backend("numpy")
    _train(b, 32)  # loads, and compiles, what tiles need
    with Watch() as watch:
        seconds, data = _train(b, side)
    grown = watch.most - watch.first
    return {"side": side, "seconds": seconds, "data_bytes": data, "bytes": grown, "peak_bytes": _peak_bytes()}


class Watch(threading.Thread):
    """first: the resident bytes of this process when the watch began; most: the most it saw."""

    def __enter__(self) -> Self:
        self.process, self.over = psutil.Process(), threading.Event()
        self.first = self.most = self.process.memory_info().rss
        self.start()
        return self

    def run(self) -> None:
        while not self.over.wait(LOOK_EVERY):
            self.most = max(self.most, self.process.memory_info().rss)

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()


def _train(b: Backend, side: int) -> tuple[float, int]:
    state, x, y = run(b, side)
    start = time.perf_counter()
    whole(fit(state.model, x, y, loss=mse, optimizer=SGD(), rate=0.1, steps=1, engine="tiled"))
    return time.perf_counter() - start, x.nbytes + y.nbytes


def _peak_bytes() -> int:
    """The most resident memory this process ever had."""
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(most if sys.platform == "darwin" else 1024 * most)


if __name__ == "__main__":
    print(json.dumps(epoch(int(sys.argv[1]))))
