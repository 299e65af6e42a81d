"""`nnlab train IMAGE --out CKPT`: teach a network to draw a picture."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import sys
from typing import TYPE_CHECKING, Any

from nnlab.commands.options import (
    add_picture_options,
    check_paths,
    count,
    picture_options,
    positive,
    seed,
    size,
    widths,
)

if TYPE_CHECKING:
    from nnlab.backends import Backend
    from nnlab.commands.painting import Picture
    from nnlab.optim import TrainState
    from nnlab.training import History

HELP = "teach a network to draw a picture, and save it as a checkpoint"
DEFAULTS: dict[str, Any] = {"model": "siren", "hidden": [128, 128, 128], "size": (200,), "rate": 1e-3, "seed": 0}
STEPS = 500
MARGIN = 0.5  # dB above a picture of one colour that a run must end to count as having learned something


def add_arguments(parser: argparse.ArgumentParser) -> None:
    new = "; for new runs only"
    parser.add_argument("image", metavar="IMAGE", help="any picture that Pillow can read")
    parser.add_argument("--out", metavar="CKPT", required=True, help="the checkpoint, saved on the way and at the end")
    parser.add_argument("--resume", action="store_true", help="go on with the run that is saved in --out")
    parser.add_argument("--model", choices=("siren", "tanh"), help=f"sines (the usual) or tanh{new}")
    parser.add_argument("--hidden", type=widths, metavar="N,N,...", help=f"hidden layers (128,128,128){new}")
    parser.add_argument("--size", type=size, help=f"the longest side, or HxW, to train at (200){new}")
    parser.add_argument("--steps", type=count, metavar="N", help=f"steps of the whole run ({STEPS})")
    parser.add_argument("--override", action="store_true", help="let --resume change the number of steps")
    parser.add_argument(
        "--rate", type=positive, help=f"the rate of Adam at the start; a cosine takes it to 0 (1e-3){new}"
    )
    parser.add_argument("--seed", type=seed, help=f"where the random weights come from (0){new}")
    parser.add_argument("--backend", default="numpy", help="numpy, sim or cupy (%(default)s)")
    parser.add_argument("--engine", help="how steps are run (tiled on numpy, else eager; with --resume, as before)")
    parser.add_argument("--time-lapse", metavar="FILE", help="an animation of the training: .gif, .png or .apng")
    parser.add_argument("--frames", type=count, default=40, metavar="N", help="how many pictures, about (%(default)s)")
    parser.add_argument("--strip", metavar="FILE", help="the same as one .png, a few frames side by side")
    parser.add_argument("--keep", type=count, default=1, metavar="N", help="checkpoints to keep, the newest first (1)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    add_picture_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """0 when the network has taken all its steps, 130 when Ctrl-C came first."""
    import nnlab
    from nnlab.commands.painting import score

    _check_files(arguments)
    backend = nnlab.backend(arguments.backend)
    state = _saved(arguments, backend) if arguments.resume else None
    if state is None:
        _fill_in(arguments)
        arguments.engine = arguments.engine or ("tiled" if backend.is_host else "eager")
    picture = _picture(arguments, state)
    history = _train(arguments, backend, picture, state)
    own, constant = score(history.state.model, picture)
    _report(arguments, history, own, constant)
    if history.interrupted:
        print(f"nnlab train: stopped early; add --resume to go on from {arguments.out}", file=sys.stderr)
    return 130 if history.interrupted else 0


def _check_files(arguments: argparse.Namespace) -> None:
    """What can be wrong with names, before any work is done."""
    from nnlab.images.animation import check_animation_name
    from nnlab.images.writing import check_name

    pictures = [path for path in (arguments.time_lapse, arguments.strip) if path is not None]
    check_paths(arguments.image, arguments.out, *pictures)
    exists = os.path.exists(arguments.out)
    if exists and not arguments.resume:
        raise FileExistsError(f"{arguments.out}: holds a run already; go on with --resume, or choose another --out")
    if not exists and arguments.resume:
        raise FileNotFoundError(f"{arguments.out}: there is no run to go on with; leave out --resume to begin one")
    if arguments.time_lapse is not None:
        check_animation_name(arguments.time_lapse)
    if arguments.strip is not None:
        check_name(arguments.strip)


def _fill_in(arguments: argparse.Namespace) -> None:
    """Fill in what was not asked for."""
    for name, value in DEFAULTS.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)


def _saved(arguments: argparse.Namespace, backend: Backend) -> TrainState:
    """The saved run; what it has settled cannot be asked for again."""
    from nnlab.errors import CheckpointMismatch
    from nnlab.training import load_checkpoint

    given = [name for name in DEFAULTS if getattr(arguments, name) is not None]
    if given:
        raise ValueError(f"--resume goes on with what {arguments.out} holds; leave out --{given[0]}")
    state = load_checkpoint(arguments.out, backend=backend)
    if arguments.steps not in (None, state.steps) and not arguments.override:
        raise CheckpointMismatch(
            f"{arguments.out}: this run was planned for {state.steps} steps, and its rates with it; leave out --steps, "
            f"or add --override to end it at {arguments.steps}"
        )
    return state


def _picture(arguments: argparse.Namespace, state: TrainState | None) -> Picture:
    from nnlab.commands.painting import load_picture, notes_of
    from nnlab.errors import CheckpointMismatch

    if state is None:
        return load_picture(arguments.image, arguments.size, **picture_options(arguments))
    notes = notes_of(state, arguments.out)
    picture = load_picture(arguments.image, (notes["height"], notes["width"]), **picture_options(arguments))
    if picture.notes["pixels"] != notes["pixels"]:
        raise CheckpointMismatch(
            f"{arguments.image} is not the picture that {arguments.out} was trained on ({notes['name']}); give that one"
        )
    return picture


def _train(arguments: argparse.Namespace, backend: Backend, picture: Picture, state: TrainState | None) -> History:
    """Train to the end or to Ctrl-C, saving on the way; stdout is left to the result."""
    from nnlab.commands.lapse import TimeLapse
    from nnlab.images import pixel_centres
    from nnlab.training import Adam, Checkpoint, Progress, cosine, fit, resume

    height, width = picture.light.shape[:2]
    x, y = pixel_centres(height, width, backend=backend), picture.target(backend)
    steps = arguments.steps or (STEPS if state is None else state.steps)
    callbacks: list[Any] = [_Note(picture.notes), Progress(delay=1.0)]
    lapse = TimeLapse(height, width, arguments.frames) if arguments.time_lapse or arguments.strip else None
    if lapse is not None:
        callbacks.append(lapse)
    callbacks.append(Checkpoint(arguments.out, every=max(1, steps // 20), keep=arguments.keep))
    with contextlib.redirect_stdout(sys.stderr):
        if state is not None:
            history = resume(
                state, x, y, steps=steps, engine=arguments.engine, callbacks=callbacks, override=arguments.override
            )
        else:
            model, loss = _network(arguments, backend, picture.notes["channels"])
            rate = cosine(arguments.rate, steps)
            history = fit(
                model, x, y, loss=loss, optimizer=Adam(), rate=rate, steps=steps, engine=arguments.engine,
                callbacks=callbacks,
            )  # fmt: skip
    if lapse is not None:
        lapse.write(arguments.time_lapse, arguments.strip)
    return history


class _Note:
    """Puts the notes on the picture into the state, so that every checkpoint holds them."""

    def __init__(self, notes: dict[str, Any]) -> None:
        self.notes = notes

    def on_start(self, state: TrainState) -> None:
        state.extra["picture"] = self.notes


def _network(arguments: argparse.Namespace, backend: Backend, channels: int) -> tuple[Any, str]:
    """The untrained network, and the loss that suits its output."""
    import numpy as np

    from nnlab import nn

    rng = np.random.default_rng(arguments.seed)
    sizes = [2, *arguments.hidden, channels]
    if arguments.model == "siren":
        return nn.siren(sizes, backend=backend, rng=rng), "mse"
    return nn.mlp(sizes, output="sigmoid", backend=backend, rng=rng), "bce"


def _report(arguments: argparse.Namespace, history: History, own: float, constant: float) -> None:
    """Say what was reached, always beside what a picture of one colour reaches."""
    state = history.state
    beats = None if math.isinf(constant) else own > constant + MARGIN  # one colour all over cannot be beaten
    notes, parameters = state.extra["picture"], sum(int(array.size) for array in state.model.parameters.values())
    result = {
        "checkpoint": arguments.out,
        "height": notes["height"],
        "width": notes["width"],
        "parameters": parameters,
        "step": state.step,
        "steps": state.steps,
        "seconds": round(history.seconds[-1], 3) if history.seconds else 0.0,
        "loss": history.loss[-1] if history.loss else None,
        "psnr": _finite(own),
        "constant_psnr": _finite(constant),
        "beats_constant": beats,
        "backend": state.model.backend.name,
        "engine": state.engine,
    }
    if arguments.json:
        print(json.dumps(result))
    else:
        print(
            f"{arguments.out}: {parameters:,} parameters, {notes['height']} rows x {notes['width']} columns, "
            f"step {state.step:,} of {state.steps:,}, {result['seconds']:.1f} s ({state.engine} on {result['backend']})"
        )
        print(f"PSNR {own:.1f} dB on the trained pixels; the best picture of one colour has {constant:.1f} dB")
    if beats is False:
        print(
            "nnlab train: this network ended no better than a picture of one colour: it has learned nothing. "
            "Try a tenth of the rate, or more steps",
            file=sys.stderr,
        )


def _finite(decibels: float) -> float | None:
    """A number for JSON, which knows no infinity: that of a picture hit exactly is null."""
    return round(decibels, 3) if math.isfinite(decibels) else None
