"""Fixtures of the whole suite: every async test runs on asyncio, uvloop and trio."""

from __future__ import annotations

import pytest

from stanchion_testing import jumping_backend

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
