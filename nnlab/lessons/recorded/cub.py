"""Long runs on the lion cub: the network the diary used, and what each of its choices does.

The cub is 200 x 200, ink 1 and paper 0. PSNR is measured on those pixels, and between them: the 400 x 400 render
against the drawing at 400 x 400.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nnlab import nn
from nnlab.backends import Array, Backend
from nnlab.datasets import data_path
from nnlab.images import constant_image, pixel_centres, psnr, read_image, render, resize, to_unit
from nnlab.lessons.recorded import recording
from nnlab.lessons.recorded.making import whole
from nnlab.lessons.recorded.thumbnails import encode
from nnlab.optim import Schedule, TrainState
from nnlab.training import SGD, Adam, cosine, fit, load_checkpoint, save_checkpoint

SIZE, SEED = 200, 0
FRAMES, SHOWN = (1, 2, 5, 10, 15, 20, 30, 40), 120  # which of the 40 moments are kept as pictures, and their side


@dataclass(frozen=True)
class Run:
    """hidden: the h of 2-h-h-2h-h-h/2-h/2-h/2-1. bias: where biases start. unit: coordinates in [0, 1], else [-1, 1].

    output: "sigmoid" with "mse", or "linear" with "bce_with_logits"; both make ink between 0 and 1.
    """

    hidden: int
    steps: int
    init: str = "xavier"
    bias: float = 0.0
    unit: bool = False
    loss: str = "mse"
    optimizer: str = "sgd"
    start: float = 1.0

    @property
    def schedule(self) -> Schedule:
        return cosine(self.start, self.steps)

    @property
    def sizes(self) -> list[int]:
        h = self.hidden
        return [2, h, h, 2 * h, h, h // 2, h // 2, h // 2, 1]


DIARY = Run(50, 1_290_000, init="normal", bias=1.0, unit=True, loss="bce_with_logits", start=0.01)
_SHORT = dataclasses.replace(DIARY, steps=100_000)
RUNS = {
    "diary": DIARY,
    "diary-short": _SHORT,
    "diary-start": dataclasses.replace(_SHORT, init="xavier", bias=0.0),
    "diary-coordinates": dataclasses.replace(_SHORT, unit=False),
    "diary-rate": dataclasses.replace(_SHORT, start=0.3),
    "diary-optimizer": dataclasses.replace(_SHORT, optimizer="adam", start=3e-3),
    "diary-all": dataclasses.replace(_SHORT, init="xavier", bias=0.0, unit=False, start=0.3),
    "pyramid64": Run(64, 200_000),
    "pyramid64-long": Run(64, 1_200_000),
}


def cub(size: int) -> np.ndarray:
    """The drawing at size x size, ink 1 and paper 0, float32; by bicubic curves, whose overshoot is cut off."""
    drawing = to_unit(read_image(data_path("simba_474.png"))).astype(np.float32)
    return 1.0 - resize(drawing, size, size, method="bicubic").clip(0.0, 1.0)


def coordinates(run: Run, centres: Array) -> Array:
    """Pixel centres in [-1, 1] as this run takes them."""
    return (centres + 1.0) * 0.5 if run.unit else centres


def build(run: Run, b: Backend) -> nn.Sequential:
    """The untrained network."""
    output = "sigmoid" if run.loss == "mse" else "linear"
    model = nn.mlp(run.sizes, output=output, init=run.init, backend=b, rng=np.random.default_rng(SEED))
    for name, value in model.parameters.items():
        if name.endswith("bias"):
            value.fill(run.bias)
    return model


def draws(model: nn.Sequential, run: Run) -> Callable[[Array], Array]:
    """The network as a function of pixel centres (n, 2) in [-1, 1]; it tells the ink there, (n, 1), from 0 to 1."""
    squash = nn.sigmoid if run.loss == "bce_with_logits" else lambda z: z
    return lambda centres: squash(model(coordinates(run, centres)))


def ink(model: nn.Sequential, run: Run, size: int) -> np.ndarray:
    """The network's picture at size x size, ink from 0 to 1."""
    return render(draws(model, run), size, size, backend=model.backend)


def painter(name: str, b: Backend) -> Callable[[Array], Array]:
    """The trained network of a recording such as "cub-pyramid64", from its checkpoint, as `draws` has it."""
    path = data_path(f"checkpoints/{name}.safetensors")
    return draws(load_checkpoint(path, backend=b).model, Run(**recording(name)["run"]))


def paint(name: str, b: Backend, engine: str, checkpoint: Path | None = None) -> dict[str, Any]:
    """Train one of RUNS; its history, PSNR at 40 moments, FRAMES of them as pictures, its checkpoint where asked."""
    run = RUNS[name]
    truth, finer = cub(SIZE), cub(2 * SIZE)
    model = build(run, b)
    log_every = run.steps // 200
    table: dict[str, Any] = {"steps": [], "trained_db": [], "render_db": [], "frames": {}}

    class Marks:
        def on_log(self, state: TrainState) -> None:
            if state.step % (5 * log_every) == 0:
                table["steps"].append(state.step)
                table["trained_db"].append(round(psnr(truth, ink(model, run, SIZE), data_range=1.0), 2))
                table["render_db"].append(round(psnr(finer, ink(model, run, 2 * SIZE), data_range=1.0), 2))
                if len(table["steps"]) in FRAMES:
                    table["frames"][state.step] = encode(1.0 - ink(model, run, SHOWN))

    x, y = coordinates(run, pixel_centres(SIZE, SIZE, backend=b)), b.asarray(truth.reshape(-1, 1))
    optimizer = Adam() if run.optimizer == "adam" else SGD()
    history = whole(fit(
        model, x, y, loss=run.loss, optimizer=optimizer, rate=run.schedule, steps=run.steps, log_every=log_every,
        engine=engine, callbacks=[Marks()],
    ))  # fmt: skip
    if checkpoint is not None:
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
        history.state.extra["cub"] = dataclasses.asdict(run)
        save_checkpoint(checkpoint, history.state)
    return table | {
        "run": dataclasses.asdict(run),
        "sizes": run.sizes,
        "parameters": sum(int(value.size) for value in model.parameters.values()),
        "constant_db": round(psnr(truth, constant_image(truth), data_range=1.0), 2),
        "loss": [float(f"{value:.5g}") for value in history.loss],
        "log_every": log_every,
        "seconds": round(history.seconds[-1], 1),
        "engine": history.state.engine,
        "seed": SEED,
    }
