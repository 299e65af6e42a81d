"""What the start of a deep network does to signals and gradients, layer by layer (lesson 14)."""

from __future__ import annotations

import ipywidgets
import numpy as np
from matplotlib.figure import Figure

from nnlab import nn
from nnlab.backends import NumpyBackend
from nnlab.errors import UnknownName
from nnlab.images import pixel_centres
from nnlab.lessons.recorded.cub import cub
from nnlab.lessons.widgets.explorer import Explorer, log_slider

SIZES = (2, 50, 50, 100, 50, 25, 25, 25, 1)
SIZE, SEED = 30, 0
BIASES, COORDINATES = (0.0, 0.25, 0.5, 1.0), ("-1 to 1", "0 to 1")
ENOUGH, SATURATED, FEW = 1e-3, 0.99, 0.05  # the goal: gradients above, and few units beyond


class Signals(Explorer):
    """An untrained pyramid(50) on the cub: its gradients, its saturated units and the picture that it starts from.

    gain: standard deviation of a weight times sqrt(inputs of its layer). bias: what all biases start at.
    coordinates: where the picture lies. Everything is computed when a control moves, on 30 x 30 pixels.
    """

    def __init__(self) -> None:
        self.backend = NumpyBackend(dtype="float64")
        self.centres = pixel_centres(SIZE, SIZE, backend=self.backend)
        self.ink = cub(SIZE).reshape(-1, 1).astype(np.float64)
        self.gain = log_slider("gain", 7.0, low=-1, high=1, step=0.05)
        self.bias = ipywidgets.SelectionSlider(options=BIASES, value=1.0, description="biases", continuous_update=False)
        self.coordinates = ipywidgets.ToggleButtons(options=COORDINATES, value="0 to 1", description="x and y")
        goal = "all gradients above 0.001, and in no layer more than 5 % of the units beyond ±0.99."
        controls = {"gain": self.gain, "bias": self.bias, "coordinates": self.coordinates}
        super().__init__(controls, self._figure(), goal=goal)

    def update(self, gain: float, bias: float, coordinates: str) -> str:
        """Show the network that starts like this."""
        if not 0 < gain <= 1000:
            raise ValueError(f"the gain is a number above 0, at most 1000, not {gain:g}")
        if coordinates not in COORDINATES:
            raise UnknownName("range of coordinates", coordinates, COORDINATES)
        x = self.centres if coordinates == COORDINATES[0] else (self.centres + 1.0) / 2.0
        sizes, shares, ink = start(self.backend, x, self.ink, gain, bias)
        for bar, height in zip(self.bars, sizes, strict=True):
            bar.set_height(height)
        for bar, height in zip(self.shares, shares, strict=True):
            bar.set_height(100 * height)
        self.paper.set_data(1.0 - ink.reshape(SIZE, SIZE))
        reached = sizes.min() > ENOUGH and shares.max() <= FEW
        verdict = "<b>goal reached</b>" if reached else "not yet"
        return (
            f"gain <b>{gain:.3g}</b>, biases {bias:g}, coordinates {coordinates}: gradients {sizes.min():.1e} to "
            f"{sizes.max():.1e}, up to {100 * shares.max():.0f} % of a layer saturated; {verdict}"
        )

    def _figure(self) -> Figure:
        fig = Figure(figsize=(8.0, 2.9), dpi=80, layout="constrained")
        left, middle, right = fig.subplots(1, 3, width_ratios=[5, 5, 4])
        layers = np.arange(1, len(SIZES))
        self.bars = left.bar(layers, 1.0, color="#0072B2")
        left.axhline(ENOUGH, color="black", linewidth=1, linestyle="--")
        left.set(xlabel="layer", ylabel="RMS of its gradient", yscale="log", ylim=(1e-12, 10), title="Gradients")
        left.set_yticks([1e-12, 1e-9, 1e-6, 1e-3, 1])
        self.shares = middle.bar(layers[:-1], 0.0, color="#D55E00")
        middle.axhline(100 * FEW, color="black", linewidth=1, linestyle="--")
        middle.set(xlabel="hidden layer", ylabel="% beyond ±0.99", ylim=(0, 100), title="Saturated units")
        self.paper = right.imshow(np.ones((SIZE, SIZE)), cmap="gray", vmin=0, vmax=1)
        right.set(title="Its first picture")
        right.axis("off")
        for ax, ticks in ((left, layers), (middle, layers[:-1])):
            ax.set_xticks(ticks)
        return fig


def start(
    b: NumpyBackend, x: np.ndarray, y: np.ndarray, gain: float, bias: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """RMS gradient of the weights by layer, share of saturated units by hidden layer, and the ink of each row."""
    model = nn.mlp(
        SIZES,
        init=lambda rng, fan_in, fan_out: gain / np.sqrt(fan_in) * rng.normal(size=(fan_in, fan_out)),
        backend=b,
        rng=np.random.default_rng(SEED),
    )
    for name, value in model.parameters.items():
        if name.endswith("bias"):
            value.fill(bias)
    z = model(x)
    _, gradient = nn.losses.bce_with_logits(z, y)
    model.backward(gradient)
    weights = [value for name, value in model.gradients.items() if name.endswith("weight")]
    sizes = np.array([np.sqrt(np.mean(value**2)) for value in weights])
    hidden = [layer.a for layer in model.layers if isinstance(layer, nn.Activation)]
    shares = np.array([np.mean(np.abs(a) > SATURATED) for a in hidden])
    return sizes, shares, nn.sigmoid(z)
