"""The course's data sets, as host float64 arrays with their fixed split."""

from __future__ import annotations

import csv
from dataclasses import dataclass

import numpy as np

from nnlab.datasets.files import data_path


@dataclass(frozen=True)
class Dataset:
    """x_train (n, d), y_train (n, 1), x_test (m, d), y_test (m, 1), all float64; the d feature names; the target's."""

    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    feature_names: tuple[str, ...]
    target_name: str

    def __repr__(self) -> str:
        rows, columns = self.x_train.shape
        return f"<Dataset: {rows} training and {len(self.x_test)} test rows, {columns} features -> {self.target_name}>"


def load_real_estate() -> Dataset:
    """House prices in New Taipei: 321 training and 93 test rows, 6 features, in the file's order.

    Target: price in 10,000 New Taiwan dollars per ping (3.3 square metres). I-Cheng Yeh, 2018, UCI data set 477,
    CC BY 4.0. Raises DataFileError.
    """
    return _load("real_estate.csv", "price")


def load_email() -> Dataset:
    """3,530 training and 391 test mails, 19 features; target 1 for spam. The test mails are the earliest.

    OpenIntro `email`, GPL-3. The column `viagra` is 0 in all training rows and 8 in one test row.
    Raises DataFileError.
    """
    return _load("email.csv", "spam")


def load_xor() -> Dataset:
    """The four rows of exclusive or: two inputs, each 0 or 1; target 1 where they differ. Test rows = training rows."""
    x = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    y = np.array([[0.0], [1.0], [1.0], [0.0]])
    return Dataset(x, y, x.copy(), y.copy(), ("a", "b"), "xor")


def _load(name: str, target: str) -> Dataset:
    with data_path(name).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    features = tuple(column for column in rows[0] if column not in (target, "split"))
    parts = {}
    for split in ("train", "test"):
        chosen = [row for row in rows if row["split"] == split]
        parts[f"x_{split}"] = np.array([[float(row[column]) for column in features] for row in chosen])
        parts[f"y_{split}"] = np.array([[float(row[target])] for row in chosen])
    return Dataset(**parts, feature_names=features, target_name=target)
