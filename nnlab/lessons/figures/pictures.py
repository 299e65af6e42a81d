"""Grey or colour pictures side by side."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from nnlab.backends import on_host


def image_row(pictures: Mapping[str, np.ndarray], *, height: float = 2.4) -> Figure:
    """One row of pictures, title → (H, W) grey or (H, W, 3) colour with values in [0, 1]; height in inches."""
    pictures = {title: on_host(picture) for title, picture in pictures.items()}
    shapes = [picture.shape for picture in pictures.values()]
    widths = [height * shape[1] / shape[0] for shape in shapes]
    fig, axes = plt.subplots(1, len(pictures), figsize=(sum(widths), height + 0.35), width_ratios=widths, squeeze=False)
    for ax, (title, picture) in zip(axes[0], pictures.items(), strict=True):
        ax.imshow(picture, cmap="gray", vmin=0, vmax=1)
        ax.set_title(title, loc="center", fontsize=10)
        ax.axis("off")
    return fig
