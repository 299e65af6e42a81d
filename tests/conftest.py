"""Fixtures for every room, and which rooms a machine without Jupyter leaves out."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import numpy as np
import pytest

import nnlab

# With these packages missing, as on a GPU server, plain `pytest tests` runs the rest. `python3 -m nnlab test` has all.
ROOM_NEEDS = {"lessons": "ipywidgets", "notebooks_checks": "nbformat", "images": "png", "commands": "png"}
collect_ignore = [room for room, package in ROOM_NEEDS.items() if importlib.util.find_spec(package) is None]


LEFT_OUT = pytest.StashKey[str]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without a card, its tests are left out, and the summary says how many and why."""
    usable, reason = nnlab.gpu_available()
    on_a_card = [item for item in items if item.get_closest_marker("gpu")]
    if on_a_card and not usable:
        config.hook.pytest_deselected(items=on_a_card)
        items[:] = [item for item in items if not item.get_closest_marker("gpu")]
        config.stash[LEFT_OUT] = f"left out: {len(on_a_card)} tests of a real GPU, because {reason}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for room in collect_ignore:
        terminalreporter.write_line(f"left out: tests/{room}, because {ROOM_NEEDS[room]} is not installed")
    if LEFT_OUT in config.stash:
        terminalreporter.write_line(config.stash[LEFT_OUT])


@pytest.fixture(params=["numpy", "sim", pytest.param("cupy", marks=pytest.mark.gpu)])
def b(request: pytest.FixtureRequest) -> nnlab.backends.Backend:
    """Every backend that can be used on this machine, in float32."""
    return nnlab.backend(request.param)


@pytest.fixture
def host64() -> nnlab.backends.Backend:
    """The host in float64: the reference."""
    return nnlab.backend("numpy", dtype="float64")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def image_i() -> Callable[..., np.ndarray]:
    """Fixture I: stripes and a step as float64 in [0, 1], for any size; evaluated from -1 to 1, both ends included."""

    def picture(height: int = 16, width: int = 24) -> np.ndarray:
        y, x = np.linspace(-1, 1, height)[:, None], np.linspace(-1, 1, width)[None, :]
        waves = 0.25 * np.sin(6 * np.pi * x) * np.cos(4 * np.pi * y)
        return np.clip(0.5 + waves + 0.25 * ((x > 0.2) & (y < -0.1)), 0, 1)

    return picture
