"""How a step is taken: optimisers, learning-rate schedules, and the state of a training run."""

from nnlab.optim.optimizers import SGD, Adam, Momentum, Optimizer, optimizer_from_config
from nnlab.optim.schedules import Constant, Cosine, Schedule, constant, cosine, schedule_from_config
from nnlab.optim.state import TrainState

__all__ = [
    "SGD",
    "Adam",
    "Constant",
    "Cosine",
    "Momentum",
    "Optimizer",
    "Schedule",
    "TrainState",
    "constant",
    "cosine",
    "optimizer_from_config",
    "schedule_from_config",
]
