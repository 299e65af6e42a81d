"""D-02: what works on the host takes arrays of a device as well, in one copy for each."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib import pyplot as plt

from nnlab import images
from nnlab.backends import on_host
from nnlab.lessons import figures

UNIT = np.linspace(0, 1, 9).reshape(3, 3)
BYTES = (255 * UNIT).astype(np.uint8)
LARGE = np.linspace(0, 1, 144).reshape(12, 12)

# call -> how many arrays it is given
HELPERS = {
    "loss_curves": (2, lambda up, folder: figures.loss_curves({"a": (up(np.arange(3)), up(np.array([3.0, 2, 1])))})),
    "image_row": (2, lambda up, folder: figures.image_row({"a": up(UNIT), "b": up(UNIT)})),
    "decision_surface": (
        2,
        lambda up, folder: figures.decision_surface(lambda x: x[:, :1], up(UNIT[:, :2]), up(np.array([[0], [1], [1]]))),
    ),
    "from_unit": (1, lambda up, folder: images.from_unit(up(UNIT))),
    "to_unit": (1, lambda up, folder: images.to_unit(up(BYTES))),
    "psnr": (2, lambda up, folder: images.psnr(up(UNIT), up(UNIT), data_range=1.0)),
    "ssim": (2, lambda up, folder: images.ssim(up(LARGE), up(LARGE), data_range=1.0)),
    "side_by_side": (2, lambda up, folder: images.side_by_side([up(UNIT), up(UNIT)])),
    "difference": (2, lambda up, folder: images.difference(up(UNIT), up(UNIT))),
    "resize": (1, lambda up, folder: images.resize(up(UNIT), 6, 6, method="nearest")),
    "write_image": (1, lambda up, folder: images.write_image(folder / "a.png", up(BYTES))),
    "image_to_csv": (1, lambda up, folder: images.image_to_csv(up(BYTES), folder / "a.csv")),
}


@pytest.mark.parametrize("name", HELPERS)
def test_one_copy_for_each_array(sim, name, tmp_path):
    copies, call = HELPERS[name]
    with sim.measure() as receipt:
        call(sim.asarray, tmp_path)
    assert receipt.d2h_copies == copies
    assert receipt.h2d_copies == copies  # the test's own
    plt.close("all")


def test_on_host(b):
    x = b.asarray([1.0, 2.0])
    assert isinstance(on_host(x), np.ndarray)
    assert on_host(x).tolist() == [1.0, 2.0]
    assert on_host([1.0]) == [1.0]
    assert on_host("text") == "text"
