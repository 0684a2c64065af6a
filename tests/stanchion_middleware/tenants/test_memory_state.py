"""The state of tenants in memory: bounds and ends."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stanchion import ConfigurationError, Limited, ScopedState
from stanchion_middleware import MemoryTenantState
from stanchion_middleware.tenants.memory_state import ENTRY_COST
from stanchion_testing import FakeClock, check_tenant_state


async def test_contract():
    """It does what every store of state owes."""
    async with MemoryTenantState() as state:
        await check_tenant_state(state)

    assert (state._size, state._count, state._tenants, state._sizes) == (0, 0, {}, {})


async def test_what_has_an_end_ends():
    """And what is replaced has the end of the newest."""
    clock = FakeClock()
    state = ScopedState(MemoryTenantState(clock=clock), "acme")
    await state.set("short", 1, ttl=5)
    await state.set("longer", 1, ttl=5)
    await state.set("longer", 1, ttl=10)
    await state.set("ever", 1, ttl=5)
    await state.set("ever", 1)
    clock.advance(4.9)
    assert await state.get("short") == 1
    clock.advance(0.1)
    assert [await state.get(key) for key in ("short", "longer", "ever")] == [None, 1, 1]
    clock.advance(5)
    assert [await state.get(key) for key in ("longer", "ever")] == [None, 1]


async def test_a_counter_keeps_its_first_end():
    """So that it counts a window."""
    clock = FakeClock()
    state = ScopedState(MemoryTenantState(clock=clock), "acme")
    for count in (1, 2, 3):
        assert await state.increment("n", ttl=3) == count
        clock.advance(1)

    assert await state.increment("n", ttl=3) == 1


async def test_a_full_store_refuses_and_drops_nothing():
    """By keys, by bytes, and all tenants together; there is room again where something ended."""
    clock = FakeClock()
    store = MemoryTenantState(max_keys=3, max_bytes=4 * ENTRY_COST, clock=clock)
    state, other = ScopedState(store, "acme"), ScopedState(store, "zeta")
    await state.set("a", 1, ttl=5)
    await state.set("b", 1)
    await state.set("c", 1)
    for use in (
        lambda: state.set("d", 1),
        lambda: state.increment("d"),
        lambda: state.compare_and_set("d", None, 1),
        lambda: state.set("a", "x" * ENTRY_COST),
    ):
        with pytest.raises(Limited) as caught:
            await use()

        assert caught.value.policy == "tenant_state"

    assert [await state.get(key) for key in "abcd"] == [1, 1, 1, None]
    await state.set("a", 2, ttl=5)
    await other.set("d", 1)
    clock.advance(5)
    await state.set("d", 1)

    total = MemoryTenantState(max_total_bytes=4 * ENTRY_COST)
    for tenant in "abc":
        await ScopedState(total, tenant).set("k", 1)

    with pytest.raises(Limited):
        await ScopedState(total, "d").set("k", "x" * ENTRY_COST)


async def test_a_flood_of_keys_is_bounded():
    """1e5 of one tenant, and as many ends of one key (L8)."""
    store = MemoryTenantState(max_keys=100)
    state = ScopedState(store, "acme")
    kept = 0
    for number in range(100_000):
        try:
            await store.set("acme", str(number), b"1", 60.0)
            kept += 1
        except Limited:
            pass

    assert kept == store._count == 100
    for number in range(1000):
        await state.set("0", number, ttl=60 + number)

    assert len(store._ends) <= 2 * 100 + 65


@example([("a", "x", "set", 1), ("a", "x", "wait", 1), ("a", "x", "wait", 1)])
@given(
    st.lists(
        st.tuples(
            st.sampled_from("ab"),
            st.sampled_from("xyz"),
            st.sampled_from(["set", "delete", "increment", "wait", "compare"]),
            st.integers(0, 3),
        ),
        max_size=40,
    )
)
def test_it_is_as_a_plain_mapping(steps):
    """Whatever is done in whatever order, with sizes that come back to nothing."""
    clock = FakeClock()
    store = MemoryTenantState(clock=clock)
    model = {}

    def run(step):
        with pytest.raises(StopIteration) as caught:
            step.send(None)

        return caught.value.value

    for tenant, key, verb, number in steps:
        state, place = ScopedState(store, tenant), (tenant, key)
        for each in [each for each, (_, ends) in model.items() if ends <= clock.now]:
            del model[each]

        ttl = number or None
        ends = clock.now + number if number else float("inf")
        if verb == "set":
            run(state.set(key, number, ttl=ttl))
            model[place] = (number, ends)
        elif verb == "delete":
            assert run(state.delete(key)) is (model.pop(place, None) is not None)
        elif verb == "increment":
            before, kept_until = model.get(place, (0, ends))
            model[place] = (before + number, kept_until)
            assert run(state.increment(key, number, ttl=ttl)) == before + number
        elif verb == "compare":
            before = model.get(place, (None,))[0]
            assert run(state.compare_and_set(key, before, 7, ttl=ttl))
            model[place] = (7, ends)
        else:
            clock.advance(number)

    for (tenant, key), (value, ends) in model.items():
        expected = None if ends <= clock.now else value
        assert run(ScopedState(store, tenant).get(key)) == expected

    clock.advance(10)
    for tenant, key in product("ab", "xyz"):  # also what has ended since anything was asked of it
        run(ScopedState(store, tenant).delete(key))

    assert (store._size, store._count, store._tenants) == (0, 0, {})


@pytest.mark.parametrize("bound", ["max_keys", "max_bytes", "max_total_bytes"])
def test_wrong_bounds(bound):
    """Nothing could be kept."""
    with pytest.raises(ConfigurationError):
        MemoryTenantState(**{bound: 0})
