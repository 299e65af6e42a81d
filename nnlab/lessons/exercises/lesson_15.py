"""The exercises of lesson 15, networks of sines."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnlab.images import constant_image, psnr
from nnlab.lessons.exercises import exercise, finished


@exercise("15.first_step", right="The first step has the size of the rate, whatever the gradient: Adam reads its sign.")
def first_step(value: Any) -> str | None:
    """Write first_step(gradient, rate): by how much Adam's very first step changes a parameter (epsilon left out)."""
    for gradient, rate in ((0.5, 0.1), (-3000.0, 0.1), (2e-6, 1e-3)):
        answer = float(finished(value(gradient, rate)))
        right = -rate * np.sign(gradient)
        if np.isclose(answer, right, rtol=1e-2, atol=0):
            continue
        if np.isclose(answer, -right, rtol=1e-2, atol=0):
            return "The sign: a step goes against the gradient."
        if np.isclose(answer, -rate * gradient):
            return "That is gradient descent. Put step 1 into the formulas: what are both averages then?"
        if np.isclose(answer, right * 0.1 / np.sqrt(0.001), rtol=1e-2):
            return "That leaves out the corrections, 1 - beta to the power of the step: at step 1 they matter most."
        return f"For a gradient of {gradient:g} and a rate of {rate:g} it is {right:g}; yours is {answer:g}."
    return None


@exercise("15.bounds", right="Wider layers take smaller weights, and only the first layer forgets about omega_0.")
def bounds(value: Any) -> str | None:
    """Write bounds(sizes, omega_0): the bound of the uniform start of each layer's weights, as a list."""
    for sizes, omega_0 in (([2, 256, 256, 1], 30.0), ([3, 64, 10, 1], 15.0)):
        answer = finished(value(list(sizes), omega_0))
        right = [1 / sizes[0]] + [float(np.sqrt(6 / n)) / omega_0 for n in sizes[1:-1]]
        given = [float(bound) for bound in answer]
        if len(given) != len(right):
            return f"sizes {sizes} have {len(right)} layers of weights; you gave {len(given)} bounds."
        for layer, (mine, theirs) in enumerate(zip(given, right, strict=True), 1):
            if np.isclose(mine, theirs):
                continue
            if layer > 1 and np.isclose(mine, theirs * omega_0):
                return f"Layer {layer}: the sine multiplies by omega_0, so that the weights are divided by it."
            if layer == 1 and np.isclose(mine, np.sqrt(6 / sizes[0]) / omega_0):
                return "That is the rule of the hidden layers, in the first one too: case 2 of the lesson."
            return f"Layer {layer} of sizes {sizes} at omega_0 = {omega_0:g}: {theirs:.5f}, not {mine:.5f}."
    return None


@exercise("15.own", right="A picture of yours, in a few thousand weights.")
def own(value: Any) -> str | None:
    """Give the path of a picture and run the cell: it trains a SIREN and hands over (picture, render)."""
    picture, seen = (np.asarray(part, dtype=float) for part in value)
    if picture.shape != seen.shape:
        return f"The picture has shape {picture.shape}, the render {seen.shape}: a network needs an output a channel."
    floor = psnr(picture, constant_image(picture), data_range=1.0)
    reached = psnr(picture, seen, data_range=1.0)
    if reached < floor + 6:
        return f"{reached:.1f} dB, against {floor:.1f} for a single colour: not yet. Take more steps or more units."
    return None
