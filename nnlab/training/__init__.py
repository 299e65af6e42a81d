"""Training: `fit`, `resume`, and the optimisers and schedules they take."""

from nnlab.optim import SGD, Adam, Momentum, TrainState, constant, cosine
from nnlab.training.fit import fit, resume
from nnlab.training.history import History
from nnlab.training.progress import Progress

__all__ = ["SGD", "Adam", "History", "Momentum", "Progress", "TrainState", "constant", "cosine", "fit", "resume"]
