"""Checkpoints: everything a run needs to go on, in one file that is whole or not there.

The file is safetensors: a JSON header and plain arrays, nothing that runs code. It holds the arrays of the state
(parameters, what the optimiser remembers, the log) and, in the header, a description of the rest with a SHA-256 sum
over every byte of the file, taken with the sum itself set to zeros.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as parse
from safetensors.numpy import save as serialise

from nnlab.backends import Backend, NumpyBackend
from nnlab.errors import CheckpointDamaged, CheckpointMismatch
from nnlab.files import atomic_write
from nnlab.nn.losses import LOSSES, loss_by_name
from nnlab.nn.networks import from_config
from nnlab.optim import TrainState, optimizer_from_config, schedule_from_config

FORMAT = 1
_NO_SUM = "0" * 64
_SUM = re.compile(rb'\\"checksum\\":\\"([0-9a-f]{64})\\"')
_LOG_TYPES = {"step": "int64", "loss": "float64", "rate": "float64", "seconds": "float64"}
_PLAIN = ("step", "steps", "log_every", "batch_size", "batch_seed", "engine", "extra")  # written as they are


def save_checkpoint(path: str | os.PathLike[str], state: TrainState) -> None:
    """Write the state to `path`, in one step: after a crash the file is the old one or the new one.

    It fits every backend, whichever it was saved from. Raises ValueError for what a file cannot describe (a loss,
    layer, optimiser or schedule of your own, notes in state.extra that are not JSON) and leaves the old file alone.
    """
    state.optimizer.prepare(state.model.parameters)
    description = _describe(state)
    to_host = state.model.backend.to_host
    arrays = {name: np.ascontiguousarray(to_host(array)) for name, array in state.arrays.items()}
    arrays |= {f"log.{column}": np.array(state.log[column], kind) for column, kind in _LOG_TYPES.items()}
    content = serialise(arrays, {"nnlab": description})
    with atomic_write(path) as file:
        file.write(_sealed(content))


def load_checkpoint(path: str | os.PathLike[str], *, backend: Backend) -> TrainState:
    """The state that was saved, with its arrays in `backend`'s home; `resume(state, x, y)` goes on with it.

    Raises FileNotFoundError; CheckpointDamaged for a file that is cut off or altered; CheckpointMismatch for one
    that is whole but no nnlab checkpoint, from a newer nnlab, or of another dtype than the backend's.
    """
    name = os.fspath(path)
    with open(path, "rb") as file:
        content = file.read()
    description, arrays = _opened(name, content)
    if description["dtype"] != str(backend.dtype):
        raise CheckpointMismatch(
            f"{name}: holds {description['dtype']}, the backend computes in {backend.dtype}; load it with "
            f'dtype="{description["dtype"]}" and convert the network: state.model.astype("{backend.dtype}")'
        )
    try:
        state = _rebuilt(description, backend)
        state.log = {column: arrays.pop(f"log.{column}").tolist() for column in _LOG_TYPES}
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointMismatch(f"{name}: this version of nnlab cannot rebuild it ({error})") from error
    _fill(name, state, arrays)
    return state


def _describe(state: TrainState) -> str:
    """All but the arrays, as JSON. The checksum comes first, so that it is found before any text of the user's."""
    description: dict[str, Any] = {"checksum": _NO_SUM, "format": FORMAT, "dtype": str(state.model.backend.dtype)}
    losses = {function: name for name, function in LOSSES.items()}
    if state.loss not in losses:
        raise ValueError(f"a checkpoint names its loss, and {state.loss!r} is none of nnlab.nn.losses")
    description |= {
        "network": state.model.config,
        "loss": losses[state.loss],
        "optimizer": state.optimizer.config,
        "optimizer_step": state.optimizer.step,
        "schedule": state.schedule.config,
    }
    description |= {name: getattr(state, name) for name in _PLAIN}
    try:
        text = json.dumps(description, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"state.extra must be plain JSON (text, numbers, lists, dicts): {error}") from error
    _rebuilt(json.loads(text), NumpyBackend(dtype=description["dtype"]))  # better to fail now than when it is needed
    return text


def _rebuilt(description: dict[str, Any], backend: Backend) -> TrainState:
    """The state that is described, with all arrays zero and an empty log."""
    model = from_config(description["network"], backend=backend)
    optimizer = optimizer_from_config(description["optimizer"])
    optimizer.prepare(model.parameters)
    optimizer.step = description["optimizer_step"]
    return TrainState(
        model=model,
        loss=loss_by_name(description["loss"]),
        optimizer=optimizer,
        schedule=schedule_from_config(description["schedule"]),
        **{name: description[name] for name in _PLAIN},
    )


def _fill(name: str, state: TrainState, arrays: dict[str, np.ndarray]) -> None:
    """Move the numbers in, strictly: every array in its place, no array left over."""
    targets, backend = state.arrays, state.model.backend
    if targets.keys() != arrays.keys():
        missing, extra = sorted(targets.keys() - arrays.keys()), sorted(arrays.keys() - targets.keys())
        raise CheckpointMismatch(f"{name}: its network lacks {missing or 'nothing'} and has {extra or 'nothing'} more")
    for key, target in targets.items():
        if tuple(target.shape) != arrays[key].shape or arrays[key].dtype != target.dtype:
            raise CheckpointMismatch(
                f"{name}: {key} is {arrays[key].dtype} {arrays[key].shape}; "
                f"its network needs {target.dtype} {tuple(target.shape)}"
            )
        target[...] = backend.asarray(arrays[key])


def _sealed(content: bytes) -> bytes:
    """The file's bytes with the sum over them in its place."""
    found = _SUM.search(content)
    assert found is not None, "the description begins with its checksum"
    start, stop = found.span(1)
    return content[:start] + hashlib.sha256(content).hexdigest().encode() + content[stop:]


def _opened(name: str, content: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Description and arrays of a file that has been proved whole."""
    damaged = CheckpointDamaged(
        f"{name}: this checkpoint is damaged (cut off, or altered since it was saved), or is no checkpoint at all; "
        "go on from an older one"
    )
    found = _SUM.search(content)
    if found is None:
        ours = b'"nnlab":' in content or b'\\"checksum\\"' in content  # one of them is left where the other is damaged
        if ours or not _is_safetensors(content):
            raise damaged
        raise CheckpointMismatch(f"{name}: is a safetensors file, but not a checkpoint of nnlab")
    start, stop = found.span(1)
    plain = content[:start] + _NO_SUM.encode() + content[stop:]
    if hashlib.sha256(plain).hexdigest().encode() != found.group(1):
        raise damaged
    length = int.from_bytes(content[:8], "little")
    description = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["nnlab"])
    if description["format"] > FORMAT:
        raise CheckpointMismatch(
            f"{name}: has format {description['format']}; this nnlab reads up to {FORMAT}: take a newer nnlab"
        )
    return description, parse(content)


def _is_safetensors(content: bytes) -> bool:
    try:
        parse(content)
    except SafetensorError:
        return False
    return True
