"""Tenants in a database."""

from __future__ import annotations

import secrets

import pytest
from pydantic import ValidationError
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from stanchion_middleware import SqlTenants, TenantRecord
from stanchion_testing import check_tenant_store

RECORD = TenantRecord(
    id="acme",
    tools=["a*"],
    rates={"burst": "100/minute"},
    roles={"lead": ["reader", "writer"]},
    settings={"a": {"b": [1, None, "é"]}},
    secrets={"key": "v"},
)


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    """SQLAlchemy runs on asyncio alone."""
    return request.param


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    """A database."""
    if request.param == "postgres":
        return request.getfixturevalue("postgres_url")

    return f"sqlite+aiosqlite:///{tmp_path / 'tenants.db'}"


@pytest.fixture
async def engine(url):
    """An engine of the test's own."""
    engine = create_async_engine(url)
    yield engine
    await engine.dispose()


@pytest.fixture
async def table(engine):
    """The name of a table that is dropped in the end."""
    name = f"tenants_{secrets.token_hex(6)}"
    yield name
    async with engine.begin() as connection:
        await connection.execute(text(f"DROP TABLE IF EXISTS {name}"))


async def test_contract(url, table):
    """It does what every store owes, with an engine that it opens."""
    async with SqlTenants(url, table=table) as store:
        await store.put(RECORD)
        await store.put(TenantRecord(id="zeta", enabled=False))
        await check_tenant_store(store, RECORD, TenantRecord(id="zeta", enabled=False))

    async with SqlTenants(url, table=table) as store:
        assert await store.find("acme") == RECORD


async def test_put_replaces_and_remove_removes(engine, table):
    """With an engine that stays open."""
    async with SqlTenants(engine, table=table) as store:
        for enabled in (True, False):
            await store.put(TenantRecord(id="acme", enabled=enabled))
            assert (await store.find("acme")).enabled is enabled

        await store.remove("acme")
        await store.remove("acme")
        assert await store.find("acme") is None

    async with engine.connect() as connection:
        assert (await connection.execute(text(f"SELECT count(*) FROM {table}"))).scalar() == 0


async def test_what_is_no_record_is_an_error(engine, table):
    """Never a tenant that may do everything; and the error holds no secret."""
    async with SqlTenants(engine, table=table) as store:
        await store.put(RECORD)
        async with engine.begin() as connection:
            wrong = '{"secrets": {"key": ["hunter2"]}}'
            await connection.execute(
                text(f"UPDATE {table} SET record = '{wrong}'".replace(":", "\\:"))
            )

        with pytest.raises(ValidationError) as caught:
            await store.find("acme")

        assert "hunter2" not in str(caught.value)


async def test_a_store_that_is_not_open_says_so(url):
    """It has no table yet."""
    with pytest.raises(RuntimeError, match="not open"):
        await SqlTenants(url).find("acme")
