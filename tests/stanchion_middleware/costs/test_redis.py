"""Costs on Redis outlive its absence: what `fail` says while it is away, and no charge lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from stanchion import ConfigurationError, Link, Next, OverBudget, Principal, Tool, Unavailable
from stanchion_middleware import (
    Bill,
    Budget,
    Charge,
    CostEntry,
    CostTracking,
    Hold,
    Price,
    RedisCosts,
)
from stanchion_middleware.costs.store import MAX_UNITS
from stanchion_testing import make_call, mock_next

from ...services import client_of

TOOL = Tool("t", print, policies={"price": (Price("1", "USD"),)})


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request):
    """The client of Redis runs on asyncio only."""
    return "asyncio", {"use_uvloop": request.param}


async def call(layer):
    await layer(mock_next("x", call=make_call(target=TOOL, principal=Principal("ada"))))


async def spent(store):
    today = datetime.now(UTC).date()
    days = [(today + timedelta(days=days)).isoformat() for days in (-1, 1)]
    return [row.calls for row in await store.report(*days)]


@pytest.mark.parametrize("fail", ["closed", "open"])
async def test_redis_killed_and_started_again(fail, own_redis, caplog):
    """The budget holds exactly over both lives, with what ran while Redis was away."""
    own_redis.kill()
    await own_redis.start(durable=True)
    store = RedisCosts(own_redis.url)
    layer = CostTracking([Budget("10 USD/total")], store=store, fail=fail)

    async def killed_inside(next):
        own_redis.kill()
        return await mock_next("x", call=next.call)()

    async with layer:
        for _ in range(3):
            await call(layer)

        made = make_call(target=TOOL, principal=Principal("ada"))
        result = await layer(Next(made, Link(killed_inside, None)))
        assert result.content[0].text == "x"
        for _ in range(2):
            if fail == "open":
                await call(layer)
            else:
                with pytest.raises(Unavailable) as refused:
                    await call(layer)

                assert refused.value.retry_after == 1

        await own_redis.start(durable=True)
        admitted = 0
        for _ in range(12):
            try:
                await call(layer)
            except OverBudget:
                continue

            admitted += 1

        ran = 3 + 1 + (2 if fail == "open" else 0)
        assert ran + admitted == 10
        assert await spent(store) == [10]

    assert caplog.text.count("further failures") == 1
    assert "is lost" not in caplog.text


async def test_a_redis_that_has_lost_all_is_used_again(own_redis):
    """Its scripts are brought again, and what it never had is settled all the same."""
    store = RedisCosts(own_redis.url)
    layer = CostTracking([Budget("10 USD/total")], store=store, fail="open")
    async with layer:
        await call(layer)
        own_redis.kill()
        await call(layer)
        await own_redis.start()
        await call(layer)
        assert await spent(store) == [2]


async def test_a_bill_whose_answer_was_lost_is_charged_once(redis_costs):
    """However often it is told again, and its key goes by itself."""
    async with redis_costs as store, client_of(store._url) as client:
        charge = Charge("line", 5, 100, 2_000_000_000)
        bill = Bill("one", 1.9e9, (charge,), ())
        await store.reserve(Hold("one", 1.9e9, 1.9e9 + 60, (charge,)))
        answers = [list(await store.settle(bill)) for _ in range(3)]
        assert answers == [[5], [], []]
        keys = [key async for key in client.scan_iter(f"{store._prefix}*")]
        assert all([await client.ttl(key) > 0 for key in keys])


async def test_rows_and_units_of_a_day_are_bounded(redis_url, prefix):
    """What is over is summed, each unit by itself, up to a number of units."""
    store = RedisCosts(redis_url, prefix=prefix, max_rows=3)
    try:
        async with store:
            for number in range(3 + MAX_UNITS + 10):
                entry = CostEntry("2026-07-28", "acme", f"p{number}", "t", f"u{number}", 1)
                await store.settle(Bill(str(number), 1.9e9, (), (entry,)))

            rows = await store.report("2026-07-28", "2026-07-28")
            assert len(rows) == 3 + MAX_UNITS
            assert sum(row.principal == "…" for row in rows) == MAX_UNITS
    finally:
        async with client_of(redis_url) as client:
            async for key in client.scan_iter(f"{store._prefix}*"):
                await client.delete(key)


@pytest.mark.parametrize(
    "options",
    [{"keep_days": 0}, {"max_rows": 0}, {"connections": 0}, {"prefix": ""}, {"prefix": "a}"}],
)
def test_what_cannot_be_is_refused(options):
    """A bad option is named before the server starts."""
    with pytest.raises(ConfigurationError, match="RedisCosts"):
        RedisCosts("redis://127.0.0.1", **options)


async def test_it_is_kept_by_a_running_server_only():
    """Before it is opened it gives no wrong answer."""
    with pytest.raises(Unavailable):
        await RedisCosts("redis://127.0.0.1").report("2026-07-28", "2026-07-28")

    await RedisCosts("redis://127.0.0.1").__aexit__()
