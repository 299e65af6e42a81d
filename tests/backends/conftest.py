"""A fresh simulated GPU for each test."""

from __future__ import annotations

import pytest

import nnlab
from nnlab.backends.sim.backend import SimBackend


@pytest.fixture
def sim() -> SimBackend:
    backend = nnlab.backend("sim")
    assert isinstance(backend, SimBackend)
    return backend
