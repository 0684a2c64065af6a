"""Servers that tests of shared stores talk to, and what holds where they are not."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import anyio
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


@asynccontextmanager
async def client_of(url):
    """A client of the Redis at *url*."""
    from redis.asyncio import Redis

    client = Redis.from_url(url)
    try:
        yield client
    finally:
        await client.aclose()


class OwnRedis:
    """A Redis of the test's own, that can be killed and started again."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

        self.url = f"redis://127.0.0.1:{self.port}"
        self._folder = folder
        self._process = None

    async def start(self, *, durable=False):
        """Start it; one that is *durable* still has what it had when it was killed."""
        from redis.exceptions import RedisError

        words = ["redis-server", "--port", str(self.port), "--save", "", "--dir", str(self._folder)]
        if durable:
            words += ["--appendonly", "yes", "--appendfsync", "always"]

        self._process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        async with client_of(self.url) as client:
            with anyio.fail_after(20):
                while True:
                    try:
                        await client.ping()
                    except RedisError:
                        await anyio.sleep(0.02)  # another process, which tells nobody
                    else:
                        return

    def kill(self):
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@pytest.fixture
async def own_redis(tmp_path):
    """A Redis of the test's own, which runs."""
    if shutil.which("redis-server") is None:
        pytest.skip("there is no redis-server on this machine to start and kill")

    own = OwnRedis(tmp_path)
    await own.start()
    yield own
    own.kill()
