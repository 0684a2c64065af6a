"""Stores of costs: in memory, and on the servers that this machine has."""

from __future__ import annotations

import secrets

import pytest

from stanchion_middleware import RedisCosts, SqlCosts


@pytest.fixture
def prefix():
    """What nobody else's keys and tables begin with."""
    return f"test_{secrets.token_hex(6)}_"


@pytest.fixture
def sqlite_costs(tmp_path):
    """A store in a file of its own."""
    return SqlCosts(f"sqlite+aiosqlite:///{tmp_path}/costs.db")


@pytest.fixture
async def postgres_costs(postgres_url, prefix):
    """A store in tables of its own, which are dropped afterwards."""
    store = SqlCosts(postgres_url, table_prefix=prefix)
    yield store
    async with store, store._engine.begin() as connection:
        await connection.run_sync(store._tables.metadata.drop_all)


@pytest.fixture
async def redis_costs(redis_url, prefix):
    """A store under keys of its own, which are deleted afterwards."""
    store = RedisCosts(redis_url, prefix=prefix)
    yield store
    async with store:
        async for key in store._client.scan_iter(match=f"{store._prefix}*"):
            await store._client.delete(key)


@pytest.fixture(params=["sqlite", "postgres", "redis"])
def shared_costs(request):
    """Each store that several processes share; they need asyncio."""
    if request.getfixturevalue("anyio_backend")[0] != "asyncio":
        pytest.skip("SQLAlchemy's and Redis' clients need asyncio")

    return request.getfixturevalue(f"{request.param}_costs")
