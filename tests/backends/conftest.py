"""A fresh simulated GPU for each test, and the real card where there is one."""

from __future__ import annotations

import pytest

import nnlab
from nnlab.backends.sim.backend import SimBackend


@pytest.fixture
def sim() -> SimBackend:
    backend = nnlab.backend("sim")
    assert isinstance(backend, SimBackend)
    return backend


@pytest.fixture
def gpu():
    """The card with a fresh default pool, in float32."""
    usable, reason = nnlab.gpu_available()
    if not usable:
        pytest.skip(reason)
    yield nnlab.backend("cupy", pool="default")
    nnlab.backend("cupy", pool="default")


@pytest.fixture(params=["numpy", "sim"])
def off_card(request):
    """The backends that interpret kernels."""
    return nnlab.backend(request.param)
