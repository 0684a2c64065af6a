"""Costs in memory follow the rules in every order, within a bound."""

from __future__ import annotations

import pytest
from hypothesis import given

from stanchion import ConfigurationError, Unavailable
from stanchion_middleware import Bill, Charge, CostEntry, Hold, MemoryCosts
from stanchion_middleware.costs.memory import SWEEP_PAUSE
from stanchion_middleware.costs.store import HOLD_LIMIT, KEPT_LINES, MAX_UNITS

from .ledger import Ledger, follow, steps

NOW = 1_785_240_000.0


@given(steps)
def test_it_follows_the_rules(taken):
    """Whatever is reserved, settled and released, in whatever order."""
    follow(taken, MemoryCosts, Ledger(once=False))


async def enter(store, day, number, unit="USD"):
    entry = CostEntry(day, "acme", f"p{number}", "t", unit, 1)
    await store.settle(Bill(f"{day}{number}{unit}", NOW, (), (entry,)))


async def test_rows_and_units_are_bounded():
    """The oldest day goes first; on one day what is over is summed, then only counted."""
    store = MemoryCosts(max_rows=3)
    await enter(store, "2026-07-27", 0)
    for number in range(3 + MAX_UNITS + 5):
        await enter(store, "2026-07-28", number, f"u{number}")

    rows = await store.report("2026-07-01", "2026-07-31")
    assert {row.day for row in rows} == {"2026-07-28"}
    assert (len(rows), store.forgotten) == (3 + MAX_UNITS, 5)
    await enter(store, "2026-07-28", 99, "u9")
    assert len(await store.report("2026-07-28", "2026-07-28")) == 3 + MAX_UNITS


async def test_lines_are_bounded_and_forgotten_a_day_after_their_window():
    """Where there is no room, what counts for nobody goes; not each time that somebody asks."""
    store = MemoryCosts(max_lines=2)
    for key in "ab":
        await store.settle(Bill(key, NOW, (Charge(key, 1, 9, int(NOW)),), ()))

    late = NOW + KEPT_LINES
    new = Charge("c", 1, 9, int(NOW) + 2 * KEPT_LINES)
    with pytest.raises(Unavailable):
        await store.reserve(Hold("c", late, late + 60, (new,)))

    late += SWEEP_PAUSE - 1
    with pytest.raises(Unavailable):
        await store.settle(Bill("c", late, (new,), ()))

    late += 1
    assert not await store.reserve(Hold("c", late, late + 60, (new,)))
    assert store.lines == 1


async def test_no_call_gives_up_all_holds():
    """So many whose time is over, and the others with the next."""
    store = MemoryCosts()
    charge = Charge("a", 1, 10**6, int(NOW) + 3600)
    for number in range(2 * HOLD_LIMIT):
        await store.reserve(Hold(str(number), NOW, NOW + 60, (charge,)))

    await store.reserve(Hold("late", NOW + 60, NOW + 120, (charge,)))
    assert store.holds == HOLD_LIMIT + 1


async def test_a_hold_outlives_its_line():
    """A call that ran longer than its line is kept ends like any other."""
    store = MemoryCosts(max_lines=1)
    charge = Charge("a", 0, 9, int(NOW))
    await store.reserve(Hold("a", NOW, NOW + 10 * KEPT_LINES, (charge,)))
    late = NOW + 2 * KEPT_LINES
    await store.settle(Bill("b", late, (Charge("b", 1, 9, int(late)),), ()))
    await store.release("a")
    assert (store.holds, store.lines) == (0, 1)


@pytest.mark.parametrize("options", [{"max_lines": 0}, {"max_rows": 0}])
def test_what_cannot_be_is_refused(options):
    """A bound is 1 or more."""
    with pytest.raises(ConfigurationError, match="MemoryCosts"):
        MemoryCosts(**options)
