"""How well, and how soon, networks paint a photograph: on the pixels they are trained on, and between them.

The photograph is 512 x 512; the networks see it at 256 x 256 (means of 2 x 2), and their 512 x 512 render is compared
with the original. Values and coordinates run from -1 to 1, full batch, mean-squared error, Adam.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nnlab import nn
from nnlab.backends import Array, Backend
from nnlab.datasets import data_path
from nnlab.images import constant_image, pixel_centres, psnr, read_image, render, resize, to_unit
from nnlab.lessons.recorded.making import whole
from nnlab.optim import Schedule, TrainState
from nnlab.training import Adam, constant, cosine, fit

MARKS = (100, 500, 1000, 2000, 5000, 15000)
WIDTH, DEPTH, OCTAVES, SEED = 256, 4, 8, 0
RANGE = (-1.0, 1.0)


@dataclass(frozen=True)
class Run:
    """One line of the table. network: "siren", an activation, or "relu with octaves"."""

    network: str
    rate: Schedule
    steps: int

    @property
    def name(self) -> str:
        kind = self.rate.config["schedule"]
        start = self.rate(0)
        return f"{self.network}, {start:g}" if kind == "constant" else f"{self.network}, cosine from {start:g}"


RUNS = (
    Run("siren", constant(1e-4), 15000),
    Run("siren", constant(1e-3), 5000),
    Run("siren", cosine(1e-3, 2000), 2000),
    Run("siren", cosine(5e-4, 1000), 1000),
    Run("tanh", constant(1e-3), 15000),
    Run("relu", constant(1e-3), 15000),
    Run("relu with octaves", constant(1e-3), 15000),
)


def octaves(b: Backend, x: Array) -> Array:
    """(n, 2) coordinates to (n, 2 + 4 * OCTAVES) features: x itself, and sin and cos of 2^k pi x (Mildenhall, 2020)."""
    waves = [x]
    for k in range(OCTAVES):
        angle = x * (2.0**k * np.pi)
        waves += [b.xp.sin(angle), b.xp.cos(angle)]
    return b.xp.concatenate(waves, axis=1)


def paint(run: Run, b: Backend, engine: str) -> dict[str, Any]:
    """Train one network; PSNR in dB at the marks, on the 256 x 256 pixels and of the 512 x 512 render."""
    photograph = 2.0 * to_unit(read_image(data_path("camera_512.png"))) - 1.0
    trained = resize(photograph, 256, 256, method="mean")
    x, y = pixel_centres(256, 256, backend=b), b.asarray(trained.reshape(-1, 1))
    features: Callable[[Array], Array] = (lambda z: octaves(b, z)) if "octaves" in run.network else (lambda z: z)
    x = features(x)
    sizes = [x.shape[1], *[WIDTH] * DEPTH, 1]
    rng = np.random.default_rng(SEED)
    if run.network == "siren":
        model = nn.siren(sizes, backend=b, rng=rng)
    else:
        model = nn.mlp(sizes, activation=run.network.split()[0], backend=b, rng=rng)
    table: dict[str, Any] = {"steps": [], "trained_db": [], "render_db": []}

    class Marks:
        def on_log(self, state: TrainState) -> None:
            if state.step in MARKS:
                small, large = (
                    render(lambda z: model(features(z)), size, size, backend=b) for size in (256, 512)
                )  # fmt: skip
                table["steps"].append(state.step)
                table["trained_db"].append(round(psnr(trained, small, data_range=RANGE), 2))
                table["render_db"].append(round(psnr(photograph, large, data_range=RANGE), 2))

    history = whole(fit(
        model, x, y, loss="mse", optimizer=Adam(), rate=run.rate, steps=run.steps, log_every=100, engine=engine,
        callbacks=[Marks()],
    ))  # fmt: skip
    parameters = sum(int(value.size) for value in model.parameters.values())
    return table | {
        "network": run.network,
        "sizes": sizes,
        "parameters": parameters,
        "schedule": run.rate.config,
        "loss": [float(f"{value:.4g}") for value in history.loss],
        "log_every": 100,
        "microseconds_per_step": round(1e6 * history.seconds[-1] / run.steps, 1),
    }


def record(b: Backend, engine: str) -> dict[str, Any]:
    """All runs of the table."""
    photograph = to_unit(read_image(data_path("camera_512.png")))
    small = resize(photograph, 256, 256, method="mean")
    floor = psnr(small, constant_image(small), data_range=1.0)
    runs = {}
    for run in RUNS:
        runs[run.name] = paint(run, b, engine)
        print(run.name, runs[run.name]["trained_db"], runs[run.name]["render_db"], flush=True)
    return {"picture": "camera_512.png", "constant_db": round(floor, 2), "seed": SEED, "engine": engine, "runs": runs}
