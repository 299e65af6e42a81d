"""How fast a large picture becomes CSV and comes back, or is drawn by a network, and how much memory that takes.

    python benchmarks/pictures.py [SIDE]        (4096 where no side is given)

Each job runs in a process of its own, so that its highest memory is its own.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import nnlab
from nnlab import cli
from nnlab.images import csv_to_image, image_to_csv, read_image, write_image

JOBS = ("make", "encode", "decode", "compare")
KINDS = {"grey8": ("uint8", 1), "colour8": ("uint8", 3), "grey16": ("uint16", 1), "colour16": ("uint16", 3)}


def make(path: Path, side: int, dtype: str, channels: int) -> None:
    """A smooth picture with noise on it, so that neither the PNG nor the text is unusually short."""
    y, x = np.mgrid[:side, :side]
    top = np.iinfo(dtype).max
    waves = (0.45 + 0.4 * np.sin(x / 97) * np.cos(y / 61))[..., None] * np.ones(channels)
    noisy = waves + np.random.default_rng(0).normal(0, 0.02, waves.shape)
    write_image(path, (noisy.clip(0, 1) * top).astype(dtype)[..., 0 if channels == 1 else slice(None)])


def job(name: str, folder: Path, side: int, kind: str) -> None:
    picture, text, back = folder / f"{kind}.png", folder / f"{kind}.csv", folder / f"{kind}-back.png"
    start = time.perf_counter()
    if name == "network":
        return make_network(folder / "network.safetensors")
    if name == "render":
        checkpoint = str(folder / "network.safetensors")
        if cli.main(["render", checkpoint, str(picture), "--size", str(side)]):
            raise SystemExit("the render failed")
        return tell(f"{'siren':9} render", side, start)
    if name == "make":
        return make(picture, side, *KINDS[kind])
    if name == "compare":
        return np.testing.assert_array_equal(read_image(picture), read_image(back))
    if name == "encode":
        image_to_csv(read_image(picture), text)
    else:
        write_image(back, csv_to_image(text))
    return tell(f"{kind:9} {name}", side, start)


def tell(what: str, side: int, start: float) -> None:
    """Print the time since `start`, and the highest memory of this process."""
    seconds = time.perf_counter() - start
    rate = side**2 * 60 / seconds / 1e6
    peak = nnlab.backend("numpy").memory().peak / 1e6
    print(f"{what} {side} x {side}: {seconds:5.1f} s, {rate:6.1f} million pixels a minute, peak {peak:.0f} MB")


def make_network(path: Path) -> None:
    """A checkpoint of the command line's usual network, trained for one step."""
    small = path.with_name("small.png")
    make(small, 32, "uint8", 1)
    if cli.main(["train", str(small), "--out", str(path), "--size", "32", "--steps", "1"]):
        raise SystemExit("the training failed")


def main(side: int = 4096) -> None:
    with tempfile.TemporaryDirectory() as folder:
        jobs = [(name, kind) for kind in KINDS for name in JOBS]
        for name, kind in [*jobs, ("network", "-"), ("render", "-")]:
            subprocess.run([sys.executable, __file__, name, folder, str(side), kind], check=True)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        job(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    else:
        main(*map(int, sys.argv[1:]))
