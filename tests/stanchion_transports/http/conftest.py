"""Fixtures of the HTTP tests: uvicorn needs asyncio, so no test here runs on trio by default."""

from __future__ import annotations

import pytest

from .peer import Desk

BACKENDS = [
    pytest.param(("asyncio", {"use_uvloop": False}), id="asyncio"),
    pytest.param(("asyncio", {"use_uvloop": True}), id="uvloop"),
]


@pytest.fixture(params=BACKENDS)
def anyio_backend(request):
    """Run each async test on both event loops that uvicorn knows."""
    return request.param


@pytest.fixture
async def desk():
    """Made on the event loop, as its events want."""
    return Desk()
