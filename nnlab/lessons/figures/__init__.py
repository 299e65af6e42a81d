"""Figures that several lessons draw, and the one way to show a figure.

fig, ax = plt.subplots(figsize=(7, 3))
ax.plot(...)
figures.show(fig, alt="The loss falls to 0.43 within 300 steps and stays there.")
"""

from nnlab.lessons.figures.curves import loss_curves
from nnlab.lessons.figures.pictures import image_row
from nnlab.lessons.figures.show import png, show
from nnlab.lessons.figures.surface import decision_surface

__all__ = ["decision_surface", "image_row", "loss_curves", "png", "show"]
