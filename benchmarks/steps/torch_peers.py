"""PyTorch: eager, the whole step compiled, the step in a CUDA graph, and the compiled step in a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from benchmarks.steps.contestant import Contestant, Field
from benchmarks.steps.jobs import Job

ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "linear": lambda z: z,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "leaky_relu": lambda z: torch.nn.functional.leaky_relu(z, 0.01),
    "sine": lambda z: torch.sin(30.0 * z),
}


class Network(torch.nn.Module):
    """The job's network with its first weights."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        self.activations = [ACTIVATIONS[name] for name in job.activations]
        self.layers = torch.nn.ModuleList()
        for start in job.start():
            fan_in, fan_out = start["weight"].shape
            layer = torch.nn.Linear(fan_in, fan_out, bias=job.bias)
            with torch.no_grad():
                layer.weight.copy_(torch.from_numpy(start["weight"].T))
                if job.bias:
                    layer.bias.copy_(torch.from_numpy(start["bias"]))
            self.layers.append(layer)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer, activation in zip(self.layers, self.activations, strict=True):
            x = activation(layer(x))
        return x


class Torch(Contestant):
    """compiled: forward, loss, backward and update in one torch.compile. graph: the step captured and replayed."""

    def __init__(self, job: Job, device: str, *, compiled: bool, graph: bool, tf32: bool = False) -> None:
        super().__init__(job)
        self.cuda = device == "gpu"
        home = torch.device("cuda" if self.cuda else "cpu")
        torch.set_float32_matmul_precision("high" if tf32 else "highest")
        self.x, self.y = (torch.from_numpy(part).float().to(home) for part in job.data())
        self.model = Network(job).to(home)
        self.loss = torch.nn.MSELoss(reduction="mean" if job.loss == "mse" else "sum")
        if job.optimizer == "sgd":
            self.optimizer: torch.optim.Optimizer = torch.optim.SGD(self.model.parameters(), lr=job.rate)
        else:
            self.optimizer = torch.optim.Adam(self.model.parameters(), lr=job.rate, capturable=graph)
        torch._dynamo.reset()
        kept = [parameter.detach().clone() for parameter in self.model.parameters()]
        self.step: Callable[[], Any] = torch.compile(self._step) if compiled else self._step
        self.predict: Callable[[], Any] = torch.compile(self._predict) if compiled else self._predict
        self._warm_up()
        if graph:
            self.step, self.predict = self._captured(self.step), self._captured(self.predict)
        with torch.no_grad():
            for parameter, first in zip(self.model.parameters(), kept, strict=True):
                parameter.copy_(first)
        for remembered in self.optimizer.state.values():
            for value in remembered.values():
                if isinstance(value, torch.Tensor):
                    value.zero_()
        torch.set_float32_matmul_precision("highest")

    def _step(self) -> None:
        self.optimizer.zero_grad()
        self.loss(self.model(self.x), self.y).backward()
        self.optimizer.step()

    def _predict(self) -> torch.Tensor:
        with torch.no_grad():
            return self.model(self.x)

    def _warm_up(self) -> None:
        stream = torch.cuda.Stream() if self.cuda else None
        with torch.cuda.stream(stream):
            for _ in range(4):
                self.step()
                self.predict()
        self.wait()

    def _captured(self, work: Callable[[], Any]) -> Callable[[], Any]:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
        return graph.replay

    def train(self, steps: int) -> None:
        for _ in range(steps):
            self.step()

    def forward(self, passes: int) -> None:
        for _ in range(passes):
            self.predict()

    def wait(self) -> None:
        if self.cuda:
            torch.cuda.synchronize()

    def weights(self) -> list[np.ndarray]:
        found = []
        for layer in self.model.layers:
            found.append(layer.weight.detach().cpu().numpy().T)
            if self.job.bias:
                found.append(layer.bias.detach().cpu().numpy())
        return found


def field(device: str) -> Field:
    def way(**options: bool) -> Callable[[Job], Contestant]:
        return lambda job: Torch(job, device, **options)

    ways = {
        "PyTorch eager": way(compiled=False, graph=False),
        "PyTorch compiled step": way(compiled=True, graph=False),
    }
    if device == "gpu":
        ways["PyTorch graph"] = way(compiled=False, graph=True)
        ways["PyTorch compiled step in a graph"] = way(compiled=True, graph=True)
        ways["PyTorch compiled step in a graph, TF32"] = way(compiled=True, graph=True, tf32=True)
    return ways
