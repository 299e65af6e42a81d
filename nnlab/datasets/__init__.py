"""The course's data: tables with their splits, and the scaler."""

from nnlab.datasets.files import data_folder, data_path
from nnlab.datasets.scaler import StandardScaler
from nnlab.datasets.tables import Dataset, load_email, load_real_estate, load_xor

__all__ = ["Dataset", "StandardScaler", "data_folder", "data_path", "load_email", "load_real_estate", "load_xor"]
