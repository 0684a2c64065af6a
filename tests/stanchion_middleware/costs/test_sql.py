"""Costs in a database keep so many rows, for so long, and charge a bill once."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings

from stanchion import ConfigurationError, Unavailable
from stanchion_middleware import Bill, Charge, CostEntry, Hold, SqlCosts
from stanchion_middleware.costs.sql import PURGE_PAUSE
from stanchion_middleware.costs.store import KEPT_LINES, MAX_UNITS

from .ledger import Ledger, follow, steps

NOW = 1_785_240_000.0  # 2026-07-28, 12:00 UTC
DAY = 24 * 3600


@pytest.fixture
def anyio_backend():
    """SQLAlchemy's drivers run on asyncio only."""
    return "asyncio"


def day_of(now):
    return datetime.fromtimestamp(now, UTC).date().isoformat()


async def enter(store, id, now=NOW, principal="ada", unit="USD", **charges):
    entry = CostEntry(day_of(now), "acme", principal, "t", unit, 1)
    await store.settle(Bill(id, now, (), (entry,)))


async def days(store):
    return sorted({row.day for row in await store.report("0001-01-01", "9999-12-31")})


async def count(store, table):
    async with store._engine.connect() as connection:
        return len((await connection.execute(getattr(store._tables, table).select())).all())


async def test_rows_are_kept_so_many_days(tmp_path):
    """What is older goes hourly, and with the first charge after a start."""
    url = f"sqlite+aiosqlite:///{tmp_path}/costs.db"
    first = day_of(NOW)
    async with SqlCosts(url, keep_days=2) as store:
        await enter(store, "a")
        await enter(store, "b", NOW + 2 * DAY)
        assert await days(store) == [first, day_of(NOW + 2 * DAY)]
        await enter(store, "c", NOW + 3 * DAY)
        assert first not in await days(store)
        await enter(store, "d", NOW + 3 * DAY + PURGE_PAUSE - 1)

    async with SqlCosts(url, keep_days=1) as store:
        await enter(store, "e", NOW + 4 * DAY)
        assert await days(store) == [day_of(NOW + 3 * DAY), day_of(NOW + 4 * DAY)]


async def test_bills_lines_and_holds_that_are_over_are_deleted(sqlite_costs):
    """No table grows for ever."""
    async with sqlite_costs as store:
        charge = Charge("line", 1, 100, int(NOW) + 60)
        await store.reserve(Hold("held", NOW, NOW + 60, (charge,)))
        await store.settle(Bill("one", NOW, (charge,), ()))
        sizes = [await count(store, name) for name in ("bills", "lines", "holds")]
        assert sizes == [1, 1, 1]
        await enter(store, "later", NOW + KEPT_LINES + 61)
        sizes = [await count(store, name) for name in ("bills", "lines", "holds")]
        assert sizes == [1, 0, 0]


async def test_rows_and_units_of_a_day_are_bounded(tmp_path):
    """What is over is summed, each unit by itself, up to a number of units."""
    async with SqlCosts(f"sqlite+aiosqlite:///{tmp_path}/costs.db", max_rows=3) as store:
        for number in range(3 + MAX_UNITS + 2):
            await enter(store, f"a{number}", principal=f"p{number}", unit=f"u{number}")

        rows = await store.report(day_of(NOW), day_of(NOW))
        assert len(rows) == 3 + MAX_UNITS
        assert sum(row.principal == "…" for row in rows) == MAX_UNITS
        await enter(store, "known", principal="p1", unit="u1")
        await enter(store, "other", principal="p9", unit="u9")
        rows = {(row.principal, row.unit): row.calls for row in await store.report("2", "3")}
        assert (rows["p1", "u1"], rows["…", "u9"]) == (2, 2)

    async with SqlCosts(f"sqlite+aiosqlite:///{tmp_path}/costs.db", max_rows=3) as store:
        await enter(store, "new", principal="new", unit="u9")
        assert len(await store.report("2", "3")) == 3 + MAX_UNITS


async def test_a_bill_whose_answer_was_lost_is_charged_once(sqlite_costs):
    """However often it is told again."""
    async with sqlite_costs as store:
        bill = Bill("one", NOW, (Charge("line", 5, 100, int(NOW) + 60),), ())
        assert [list(await store.settle(bill)) for _ in range(3)] == [[5], [], []]


@given(steps)
@settings(max_examples=15)
def test_it_follows_the_rules(taken):
    """Whatever is reserved, settled and released, in whatever order."""
    follow(taken, lambda: SqlCosts("sqlite+aiosqlite:///:memory:"), Ledger(once=True))


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("mysql://root:secret@h/d", {}),
        ("sqlite+aiosqlite:///a", {"table_prefix": "a b"}),
        ("sqlite+aiosqlite:///a", {"table_prefix": "a" * 41}),
        ("sqlite+aiosqlite:///a", {"pool": 0}),
        ("sqlite+aiosqlite:///a", {"keep_days": 0}),
        ("sqlite+aiosqlite:///a", {"max_rows": 0}),
    ],
)
def test_what_cannot_be_is_refused(url, options):
    """A bad option is named, and no password is."""
    with pytest.raises(ConfigurationError, match="SqlCosts") as refused:
        SqlCosts(url, **options)

    assert "secret" not in str(refused.value)


async def test_it_is_kept_by_a_running_server_only():
    """Before it is opened it gives no wrong answer."""
    with pytest.raises(Unavailable):
        await SqlCosts("sqlite+aiosqlite:///a").release("a")

    await SqlCosts("sqlite+aiosqlite:///a").__aexit__()
