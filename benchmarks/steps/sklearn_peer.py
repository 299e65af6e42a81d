"""scikit-learn's MLPRegressor on the CPU, for the jobs it knows: one activation, a linear output, MSE."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.neural_network import MLPRegressor

from benchmarks.steps.contestant import Contestant, Field
from benchmarks.steps.jobs import Job

NAMES = {"tanh": "tanh", "sigmoid": "logistic"}


class Sklearn(Contestant):
    """Full batches. Its loss is half of MSE, so the rate is doubled for the same steps."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        if job.hidden not in NAMES or job.output != "linear" or not job.bias or job.loss != "mse" or job.widths[-1] > 1:
            raise NotImplementedError
        x, y = job.data()
        self.x, self.y = x.astype(np.float32), y.astype(np.float32).ravel()
        adam = job.optimizer == "adam"
        self.model = MLPRegressor(
            hidden_layer_sizes=job.widths[1:-1],
            activation=NAMES[job.hidden],
            solver="adam" if adam else "sgd",
            alpha=0.0,
            batch_size=job.rows,
            learning_rate_init=job.rate if adam else 2 * job.rate,
            momentum=0.0,
            nesterovs_momentum=False,
        )
        self.train(1)
        for place, start in enumerate(job.start()):
            self.model.coefs_[place][...] = start["weight"]
            self.model.intercepts_[place][...] = start["bias"]

    def train(self, steps: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(steps):
                self.model.partial_fit(self.x, self.y)

    def forward(self, passes: int) -> None:
        for _ in range(passes):
            self.model.predict(self.x)

    def wait(self) -> None:
        """The host has done its work when the call returns."""

    def weights(self) -> list[np.ndarray]:
        return [array for pair in zip(self.model.coefs_, self.model.intercepts_, strict=True) for array in pair]


def field(device: str) -> Field:
    return {"scikit-learn": Sklearn} if device == "cpu" else {}
