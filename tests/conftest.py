"""Fixtures for every room."""

from __future__ import annotations

import numpy as np
import pytest

import nnlab


@pytest.fixture(params=["numpy", "sim"])
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
