"""The pytest plugin: fixtures for those who test servers and middleware."""

from __future__ import annotations

import pytest

from .clock import FakeClock


@pytest.fixture
def fake_clock() -> FakeClock:
    """A clock that stands still until the test advances it."""
    return FakeClock()
