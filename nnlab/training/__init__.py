"""Training: `fit`, `resume`, checkpoints, and the optimisers and schedules they take."""

from nnlab.optim import SGD, Adam, Momentum, TrainState, constant, cosine
from nnlab.training.checkpoint import load_checkpoint, save_checkpoint
from nnlab.training.fit import fit, resume
from nnlab.training.history import History
from nnlab.training.keeper import Checkpoint
from nnlab.training.progress import Progress

__all__ = [
    "SGD",
    "Adam",
    "Checkpoint",
    "History",
    "Momentum",
    "Progress",
    "TrainState",
    "constant",
    "cosine",
    "fit",
    "load_checkpoint",
    "resume",
    "save_checkpoint",
]
