"""The state of tenants in Redis, shared by processes."""

from __future__ import annotations

import secrets

import pytest
from redis.asyncio import Redis

from stanchion import ConfigurationError, Limited, ScopedState, Unavailable
from stanchion_middleware import RedisTenantState
from stanchion_testing import check_tenant_state


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    """The client runs on asyncio alone."""
    return request.param


@pytest.fixture
async def redis(redis_url):
    """A client of the test's own."""
    async with Redis.from_url(redis_url) as client:
        yield client


@pytest.fixture
async def prefix(redis):
    """What the keys of the test begin with; they are dropped in the end."""
    prefix = f"test:{secrets.token_hex(8)}:"
    yield prefix
    async for key in redis.scan_iter(f"{prefix}*"):
        await redis.delete(key)


async def test_contract(redis_url, redis, prefix):
    """It does what every store of state owes, and leaves no key behind."""
    async with RedisTenantState(redis_url, prefix=prefix) as state:
        await check_tenant_state(state)

    assert [key async for key in redis.scan_iter(f"{prefix}*")] == []


async def test_two_processes_share_it(redis, prefix):
    """A client of one's own stays open."""
    async with RedisTenantState(redis, prefix=prefix) as one:
        await ScopedState(one, "acme").increment("n")

    async with RedisTenantState(redis, prefix=prefix) as two:
        assert await ScopedState(two, "acme").increment("n") == 2
        assert await ScopedState(two, "zeta").get("n") is None


async def test_ends_are_redis_own(redis, prefix):
    """A counter keeps its first; what is set has its newest; the index ends with the last."""
    async with RedisTenantState(redis, prefix=prefix) as store:
        state = ScopedState(store, "acme")
        value, index = store._keys("acme", "n")
        await state.increment("n", ttl=10)
        await state.increment("n", ttl=1000)
        assert 9_000 < await redis.pttl(value) <= 10_000
        assert 9_000 < await redis.pttl(index) <= 10_000
        await state.set("n", 1, ttl=100)
        assert 90_000 < await redis.pttl(value) <= 100_000
        await state.set("n", 1)
        assert (await redis.ttl(value), await redis.ttl(index)) == (-1, -1)


async def test_a_full_store_refuses_and_takes_again_what_has_ended(redis, prefix):
    """The index forgets what Redis has dropped."""
    async with RedisTenantState(redis, prefix=prefix, max_keys=2) as store:
        state = ScopedState(store, "acme")
        await state.set("a", 1, ttl=1000)
        await state.set("b", 1)
        for use in (
            lambda: state.set("c", 1),
            lambda: state.increment("c"),
            lambda: state.compare_and_set("c", None, 1),
        ):
            with pytest.raises(Limited):
                await use()

        await state.set("a", 2, ttl=1000)
        await ScopedState(store, "zeta").set("c", 1)
        # As if its time had passed.
        value, index = store._keys("acme", "a")
        await redis.delete(value)
        await redis.zadd(index, {"a": 1})
        await state.set("c", 1)
        assert await redis.zrange(index, 0, -1) == [b"b", b"c"]


async def test_no_tenant_reaches_into_the_keys_of_another(redis, prefix):
    """Whatever its id and keys hold; all keys of one have one hash tag."""
    async with RedisTenantState(redis, prefix=prefix) as store:
        await store.set("a}:value:b", "k", b"1", None)
        assert await store.get("a", "b}:value:k") is None
        keys = [key async for key in redis.scan_iter(f"{prefix}*")]
        assert len({key[key.index(b"{") : key.index(b"}")] for key in keys}) == 1


async def test_where_redis_is_away_it_is_a_refusal():
    """With every verb, and in the words of a refusal."""
    async with RedisTenantState("redis://127.0.0.1:1/0", timeout=1.0) as store:
        state = ScopedState(store, "acme")
        for use in (
            lambda: state.get("k"),
            lambda: state.set("k", 1),
            lambda: state.delete("k"),
            lambda: state.increment("k"),
            lambda: state.compare_and_set("k", None, 1),
        ):
            with pytest.raises(Unavailable):
                await use()


@pytest.mark.parametrize("options", [{"max_keys": 0}, {"timeout": 0}, {"prefix": "a{b}"}])
def test_wrong_options(options):
    """A prefix with braces would take the hash tag's place."""
    with pytest.raises(ConfigurationError):
        RedisTenantState("redis://x", **options)
