"""Figures that several lessons draw, and the one way to show a figure.

fig, ax = plt.subplots(figsize=(7, 3))
ax.plot(...)
figures.show(fig, alt="The loss falls to 0.43 within 300 steps and stays there.")
"""

from nnlab.lessons.figures.curves import loss_curves
from nnlab.lessons.figures.growth import growth, growth_words
from nnlab.lessons.figures.pictures import image_row
from nnlab.lessons.figures.roofline import Dot, roofline, roofline_words
from nnlab.lessons.figures.show import png, show
from nnlab.lessons.figures.spread import bands, dots
from nnlab.lessons.figures.staircase import Stair, staircase, staircase_words
from nnlab.lessons.figures.surface import decision_surface
from nnlab.lessons.figures.timeline import timeline, timeline_words

__all__ = [
    "Dot",
    "Stair",
    "bands",
    "decision_surface",
    "dots",
    "growth",
    "growth_words",
    "image_row",
    "loss_curves",
    "png",
    "roofline",
    "roofline_words",
    "show",
    "staircase",
    "staircase_words",
    "timeline",
    "timeline_words",
]
