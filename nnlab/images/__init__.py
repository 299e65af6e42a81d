"""Pictures as arrays and as text, coordinates to paint on, renders at any size, and how good they are."""

from __future__ import annotations

from nnlab.images.animation import write_animation
from nnlab.images.checks import MAX_PIXELS
from nnlab.images.coordinates import pixel_centres
from nnlab.images.csv_file import csv_to_image, image_to_csv
from nnlab.images.figures import difference, side_by_side
from nnlab.images.quality import constant_image, psnr, ssim
from nnlab.images.reading import read_image
from nnlab.images.rendering import render
from nnlab.images.resizing import resize
from nnlab.images.values import from_unit, to_unit
from nnlab.images.writing import write_image

__all__ = [
    "MAX_PIXELS",
    "constant_image",
    "csv_to_image",
    "difference",
    "from_unit",
    "image_to_csv",
    "pixel_centres",
    "psnr",
    "read_image",
    "render",
    "resize",
    "side_by_side",
    "ssim",
    "to_unit",
    "write_animation",
    "write_image",
]
