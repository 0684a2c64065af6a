"""Servers that tests of shared stores talk to, and what holds where they are not."""

from __future__ import annotations

import os
import socket
from urllib.parse import urlsplit

import pytest

REDIS_URL = os.environ.get("STANCHION_TEST_REDIS", "redis://127.0.0.1:6379/0")
POSTGRES_URL = os.environ.get(
    "STANCHION_TEST_POSTGRES", "postgresql+asyncpg://postgres@127.0.0.1:5432/test"
)


def needed(url, name):
    """Give *url* if a server listens there; else skip the test, or in CI fail it."""
    parts = urlsplit(url)
    try:
        socket.create_connection((parts.hostname, parts.port), timeout=2).close()
    except OSError as error:
        reason = f"no {name} at {parts.hostname}:{parts.port} ({error})"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)

        pytest.skip(reason)

    return url


@pytest.fixture
def redis_url():
    """Where a Redis is that tests may use, under keys of their own."""
    return needed(REDIS_URL, "Redis")


@pytest.fixture
def postgres_url():
    """Where a PostgreSQL is that tests may use, with tables of their own."""
    return needed(POSTGRES_URL, "PostgreSQL")
