"""Pictures as arrays and as text, coordinates to paint on, renders at any size, and how good they are."""

from __future__ import annotations

from nnlab.images.checks import MAX_PIXELS
from nnlab.images.csv_file import csv_to_image, image_to_csv
from nnlab.images.reading import read_image
from nnlab.images.values import from_unit, to_unit
from nnlab.images.writing import write_image

__all__ = ["MAX_PIXELS", "csv_to_image", "from_unit", "image_to_csv", "read_image", "to_unit", "write_image"]
