"""Counts in memory are exact, and bounded whatever comes."""

from __future__ import annotations

import pytest

from stanchion import ConfigurationError, Unavailable
from stanchion_middleware import MemoryLimits, Rate
from stanchion_middleware.limiting.window import WINDOWS
from stanchion_testing import FakeClock, check_limit_storage

STRATEGIES = list(WINDOWS)
RATE = Rate(2, 60)


@pytest.fixture
def clock():
    return FakeClock(1000.0)


async def admitted(storage, key, times=1, *, rate=RATE, weight=1):
    """Count calls, and say how many are admitted."""
    return sum([not await storage.take([key], [rate], weight) for _ in range(times)])


async def test_it_keeps_the_contract():
    """What every storage owes."""
    async with MemoryLimits() as storage:
        await check_limit_storage(storage)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # dear, and the same on all
@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_a_flood_of_callers_leaves_a_bounded_number_of_slots(strategy):
    """A flood of keys has room for what was asked for, and everybody is still counted."""
    slots, callers = (16_000, 100_000) if strategy == "fixed-window" else (1000, 5000)
    storage = MemoryLimits(max_slots=slots)
    for number in range(callers):
        assert await admitted(storage, str(number), rate=Rate(2, 60, strategy)) == 1
        assert len(storage) <= slots

    assert len(storage._windows) + sum(
        len(getattr(window, "entries", ())) for window in storage._windows.values()
    ) == len(storage)


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_a_flood_does_not_free_who_is_refused(strategy, clock):
    """A caller over its limit stays over it, however many others come."""
    storage = MemoryLimits(max_slots=100, clock=clock)
    rate = Rate(2, 60, strategy)
    assert await admitted(storage, "greedy", 3, rate=rate) == 2
    for number in range(2000):
        await admitted(storage, str(number), rate=rate)

    assert await admitted(storage, "greedy", 3, rate=rate) == 0


async def test_who_has_most_left_makes_room(clock):
    """Of those that are within their limits, who loses its count gains least."""
    storage = MemoryLimits(max_slots=64, clock=clock)
    wide = Rate(100, 60)
    for number in range(63):
        await storage.take([str(number)], [wide], 90 if number else 1)

    assert "0" in storage._windows
    await admitted(storage, "new", rate=wide)
    assert "0" not in storage._windows
    assert {str(number) for number in range(1, 63)} <= set(storage._windows)


async def test_a_storage_full_of_refused_callers_says_so(clock, caplog):
    """New ones are then not counted, which the log says once a minute; others go on."""
    storage = MemoryLimits(max_slots=64, clock=clock)
    rate = Rate(1, 600)
    for number in range(63):
        await admitted(storage, str(number), rate=rate)

    for _ in range(5):
        with pytest.raises(Unavailable) as refused:
            await admitted(storage, "new", rate=rate)

    assert refused.value.retry_after == 1
    assert await admitted(storage, "1", rate=rate) == 0
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    clock.advance(61)
    with pytest.raises(Unavailable):
        await admitted(storage, "new", rate=rate)

    assert len(caplog.records) == 2
    clock.advance(1200)
    assert await admitted(storage, "new", rate=rate) == 1


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_what_has_expired_goes_as_others_come(strategy, clock):
    """Without a task of its own the storage shrinks to who still counts."""
    storage = MemoryLimits(clock=clock)
    rate = Rate(2, 1, strategy)
    for number in range(500):
        await admitted(storage, f"old{number}", rate=rate)

    clock.advance(10)
    for number in range(400):
        await admitted(storage, f"new{number}", rate=rate)

    assert len(storage._windows) == 400


async def test_moving_windows_take_a_slot_for_each_call(clock):
    """So few callers with many calls are bounded as well."""
    storage = MemoryLimits(max_slots=100, clock=clock)
    rate = Rate(10_000, 60, "moving-window")
    for _ in range(97):
        assert await admitted(storage, "one", rate=rate) == 1

    assert len(storage) == 98
    await admitted(storage, "other", rate=rate)
    assert set(storage._windows) == {"one", "other"}
    await admitted(storage, "other", rate=rate)
    assert set(storage._windows) == {"other"}


async def test_a_key_that_has_expired_is_counted_anew(clock):
    """Also where it makes room for itself."""
    storage = MemoryLimits(clock=clock)
    assert await admitted(storage, "a", 3) == 2
    clock.advance(200)
    assert await storage.take(["a", "b"], [Rate(2, 60), Rate(2, 60)], 1) == ()
    assert await admitted(storage, "a", 3) == 1
    assert len(storage) == 2


def test_a_bound_of_nothing_is_refused():
    """There must be room for what one call needs."""
    with pytest.raises(ConfigurationError):
        MemoryLimits(max_slots=63)
