"""Every exception nnlab raises, with the built-in exception it can also be caught as.

A message names the culprit and the cure, so that the last line of a traceback is enough to go on.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import numpy as np


class BackendUnavailable(RuntimeError):
    """A backend was asked for by name and this machine cannot provide it."""


class MixedBackendError(TypeError):
    """Arrays with different homes met in one operation."""


class ShapeError(ValueError):
    """Shapes do not fit together; the message shows all of them."""


class UnknownName(ValueError):
    """A name is not one of the valid ones; the message lists them and suggests the nearest."""

    def __init__(self, kind: str, name: object, valid: Iterable[str]) -> None:
        self.kind, self.name, self.valid = kind, name, tuple(valid)
        nearest = difflib.get_close_matches(str(name), self.valid, n=1, cutoff=0.0)
        hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
        super().__init__(f"unknown {kind} {name!r}.{hint} Valid: {', '.join(self.valid)}.")


class NotFitted(RuntimeError):
    """Something was used before `fit` gave it its numbers."""


class DataFileError(FileNotFoundError):
    """A data file is missing or is not the file this version of nnlab was made with."""


class ImageFileError(ValueError):
    """A picture or its CSV is damaged, too large, or would lose something; the message names file and cure."""


class DivergenceError(ArithmeticError):
    """The loss stopped being finite; parameters and optimiser are back at the last logged step.

    step: the first step whose loss was not finite. last_loss: the last finite loss before it.
    """

    def __init__(self, message: str, *, step: int, last_loss: float | None) -> None:
        super().__init__(message)
        self.step, self.last_loss = step, last_loss


class SingularMatrixError(np.linalg.LinAlgError):
    """A matrix has no inverse (to working precision), on whatever backend it lives."""


class DeviceOutOfMemory(MemoryError):
    """A device has too little free memory; the message states asked, used, held and limit in bytes."""


class DoubleFree(RuntimeError):
    """A block of device memory was given back twice."""


class CaptureError(RuntimeError):
    """An operation cannot be recorded into a graph; the message names it and what to use instead."""


class CheckpointDamaged(ValueError):
    """A checkpoint file is cut off or altered."""


class CheckpointMismatch(ValueError):
    """A checkpoint is whole, but does not fit what it is loaded into."""


class EngineCannot(NotImplementedError):
    """An engine does not support something; the message names it before anything is run."""


class KernelFault(RuntimeError):
    """A kernel's threads race for an element, miss a barrier, or write something else than they must."""
