"""Fixtures of the whole suite: every async test runs on asyncio, uvloop and trio."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from stanchion_testing import jumping_backend

from .services import own_redis, postgres_url, redis_url

__all__ = ["own_redis", "postgres_url", "redis_url"]

# How long generated input takes says nothing of the code, and much of the machine.
settings.register_profile("stanchion", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("stanchion")

BACKENDS = [
    pytest.param(("asyncio", {"use_uvloop": False}), id="asyncio"),
    pytest.param(("asyncio", {"use_uvloop": True}), id="uvloop"),
    pytest.param(("trio", {}), id="trio"),
]


@pytest.fixture(params=BACKENDS)
def anyio_backend(request):
    """Run each async test on every event loop."""
    return request.param


@pytest.fixture(params=["asyncio", "trio"])
def jumping_time(request):
    """For modules that set `anyio_backend = jumping_time`: time jumps to the next deadline."""
    return jumping_backend(request.param)
