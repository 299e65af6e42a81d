"""SIRENs of several widths and frequencies omega_0 on the lion cub: the runs behind the sliders of lesson 15.

The cub is 128 x 128, its 256 x 256 render is compared with the drawing at that size; coordinates and values run from
-1 to 1, paper 1. Three hidden layers, full batch, mean-squared error, Adam, cosine from 1e-3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nnlab import nn
from nnlab.backends import Backend
from nnlab.images import constant_image, pixel_centres, psnr, render
from nnlab.lessons.recorded.cub import cub
from nnlab.lessons.recorded.making import whole
from nnlab.lessons.recorded.thumbnails import encode
from nnlab.optim import TrainState
from nnlab.training import Adam, cosine, fit

OMEGAS, WIDTHS = (1, 5, 15, 30, 60, 120), (16, 32, 64, 128)
SIZE, DEPTH, STEPS, LOG_EVERY, SEED = 128, 3, 400, 25, 0
RATE, RANGE = 1e-3, (-1.0, 1.0)
SHOWN = 160  # the side of the small picture


def spreads(model: nn.Sequential, x: np.ndarray) -> list[float]:
    """Standard deviation of each sine's argument omega_0 * z over rows and units, with all biases zero, in float64.

    x: (rows, 2) on the host.
    """
    found, signal = [], np.asarray(x, np.float64)
    for linear, sine in zip(model.layers[::2], model.layers[1::2], strict=False):
        assert isinstance(linear, nn.Linear)
        assert isinstance(sine, nn.Sine)
        weight = model.backend.to_host(linear.parameters["weight"]).astype(np.float64)
        argument = sine.omega_0 * (signal @ weight)
        found.append(float(argument.std()))
        signal = np.sin(argument)
    return found


def paint(omega_0: float, width: int, b: Backend, engine: str) -> dict[str, Any]:
    """Train one SIREN; PSNR in dB every LOG_EVERY steps on the trained pixels and of the finer render."""
    truth, finer = 1.0 - 2.0 * cub(SIZE), 1.0 - 2.0 * cub(2 * SIZE)
    model = nn.siren([2, *[width] * DEPTH, 1], omega_0=omega_0, backend=b, rng=np.random.default_rng(SEED))
    x = pixel_centres(SIZE, SIZE, backend=b)
    run: dict[str, Any] = {"omega_0": omega_0, "width": width, "spreads": spreads(model, b.to_host(x))}
    run |= {"steps": [], "trained_db": [], "render_db": []}

    class Marks:
        def on_log(self, state: TrainState) -> None:
            run["steps"].append(state.step)
            run["trained_db"].append(round(psnr(truth, render(model, SIZE, SIZE), data_range=RANGE), 2))
            run["render_db"].append(round(psnr(finer, render(model, 2 * SIZE, 2 * SIZE), data_range=RANGE), 2))

    whole(fit(
        model, x, b.asarray(truth.reshape(-1, 1)), loss="mse", optimizer=Adam(), rate=cosine(RATE, STEPS),
        steps=STEPS, log_every=LOG_EVERY, engine=engine, callbacks=[Marks()],
    ))  # fmt: skip
    run["spreads"] = [round(spread, 3) for spread in run["spreads"]]
    run["parameters"] = sum(int(value.size) for value in model.parameters.values())
    run["picture"] = encode((render(model, SHOWN, SHOWN) + 1.0) / 2.0)
    return run


def record(b: Backend, engine: str) -> dict[str, Any]:
    """All runs, and what they have in common."""
    truth = 1.0 - 2.0 * cub(SIZE)
    floor = round(psnr(truth, constant_image(truth), data_range=RANGE), 2)
    runs = []
    for width in WIDTHS:
        for omega_0 in OMEGAS:
            runs.append(paint(omega_0, width, b, engine))
            print(
                f"omega_0 {omega_0}, width {width}:", runs[-1]["trained_db"][-1], runs[-1]["render_db"][-1], flush=True
            )
    common = {"size": SIZE, "hidden_layers": DEPTH, "schedule": cosine(RATE, STEPS).config, "seed": SEED}
    return common | {"picture": "simba_474.png", "constant_db": floor, "engine": engine, "runs": runs}
