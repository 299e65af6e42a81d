"""The networks that everybody trains, with their data and their first weights."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np


@dataclass(frozen=True)
class Job:
    """A network and what one training step of it takes.

    widths: inputs, then the outputs of each layer. hidden, output: activations ("sine" has omega_0 = 30). loss: "mse"
    or "sse". optimizer: "sgd" or "adam". check_steps: how many steps the comparison with float64 takes.
    """

    name: str
    widths: tuple[int, ...]
    rows: int
    hidden: str
    output: str = "linear"
    bias: bool = True
    loss: str = "mse"
    optimizer: str = "sgd"
    rate: float = 0.05
    check_steps: int = 100

    @property
    def activations(self) -> list[str]:
        """The activation behind each layer."""
        return [self.hidden] * (len(self.widths) - 2) + [self.output]

    @property
    def weights(self) -> int:
        """Numbers in the weight matrices."""
        return sum(a * b for a, b in pairwise(self.widths))

    @property
    def operations(self) -> int:
        """Multiplications and additions in a step's products; the first layer needs no dLoss/dx."""
        return 2 * self.rows * (3 * self.weights - self.widths[0] * self.widths[1])

    def data(self) -> tuple[np.ndarray, np.ndarray]:
        """x and y, float64, the same at every call."""
        rng = np.random.default_rng(1)
        x = rng.uniform(-1, 1, (self.rows, self.widths[0]))
        return x, rng.uniform(0.1, 0.9, (self.rows, self.widths[-1]))

    def start(self) -> list[dict[str, np.ndarray]]:
        """Each layer's first weight (inputs, outputs) and bias, float64, the same at every call."""
        rng = np.random.default_rng(0)
        layers = []
        for place, (fan_in, fan_out) in enumerate(pairwise(self.widths)):
            limit = np.sqrt(6 / (fan_in + fan_out))
            if self.hidden == "sine":  # as nnlab.nn.siren
                limit = 1 / fan_in if place == 0 else np.sqrt(6 / fan_in) / 30
            layer = {"weight": rng.uniform(-limit, limit, (fan_in, fan_out))}
            if self.bias:
                layer["bias"] = rng.uniform(-0.1, 0.1, fan_out)
            layers.append(layer)
        return layers


def _dispatch(rows: int) -> Job:
    # The sum of squares grows with the rows; above a batch of 32 the published rate of 1e-3 would diverge.
    return Job(
        f"dispatch{rows}", (784, 256, 128, 10), rows, "leaky_relu", bias=False, loss="sse", rate=1e-3 / max(1, rows / 8)
    )


JOBS = {
    job.name: job
    for job in (
        *(_dispatch(rows) for rows in (1, 32, 256, 1024)),
        Job("estate", (6, 64, 1), 321, "tanh"),
        Job("simba", (2, 64, 64, 128, 64, 32, 32, 32, 1), 40_000, "tanh", output="sigmoid", check_steps=4),
        Job("siren64", (2, 64, 64, 64, 1), 40_000, "sine", optimizer="adam", rate=1e-4, check_steps=4),
        Job("siren", (2, 256, 256, 256, 256, 1), 65_536, "sine", optimizer="adam", rate=1e-4, check_steps=2),
    )
}
