"""What every store of tenants, and of their state, owes, as checks that run over any of them.

async def test_my_tenants():
    async with open_my_tenants(record) as store:
        await check_tenant_store(store, record)
"""

from __future__ import annotations

import secrets

import anyio

from stanchion import MAX_STATE_INTEGER, MAX_STATE_VALUE_BYTES, ScopedState, TenantState
from stanchion_middleware import TenantRecord, TenantStore, is_tenant_id

from .event_contract import StoreBroken
from .trial import Unpaid, owes

CONCURRENT = 20
"""How many at once race for one key."""


async def check_tenant_store(store: TenantStore, *records: TenantRecord) -> None:
    """Check that a store, which is open and holds *records*, does what its base class promises.

    Raises:
        StoreBroken: The store fails.
    """
    try:
        owes(bool(records), "a store that is checked holds a record at least")
        for record in records:
            owes(await store.find(record.id) == record, f"{record.id} is found as it was put in")

        owes(await store.find(f"x{secrets.token_hex(8)}") is None, "an unknown id is None")
        await _compares_exactly(store, {record.id for record in records})
        await _serves_many(store, records[0])
    except Unpaid as debt:
        raise StoreBroken(f"not so: {debt}") from None


async def _compares_exactly(store: TenantStore, ids: set[str]) -> None:
    for id in ids:
        # As case-blind columns, patterns and prefixes would take them for the same.
        others = {id.upper(), id.lower(), f"{id}x", id[:-1], f"{id[:-1]}_", f"{id}."}
        for other in others - ids:
            if is_tenant_id(other):
                owes(await store.find(other) is None, f"{other} is not {id}")


async def _serves_many(store: TenantStore, record: TenantRecord) -> None:
    found: list[TenantRecord | None] = []

    async def find() -> None:
        found.append(await store.find(record.id))

    async with anyio.create_task_group() as group:
        for _ in range(CONCURRENT):
            group.start_soon(find)

    owes(found == [record] * CONCURRENT, "many may ask at once")


async def check_tenant_state(state: TenantState) -> None:
    """Check that a store of state, which is open, does what its base class promises.

    It uses tenants of its own and drops what it kept. It waits for no time to live to end, and
    checks no bound on keys, because each store has its own.

    Raises:
        StoreBroken: The store fails.
    """
    ours = ScopedState(state, secrets.token_hex(8))
    theirs = ScopedState(state, secrets.token_hex(8))
    try:
        await _keeps(ours)
        await _keeps_apart(ours, theirs)
        await _counts(ours)
        await _compares(ours)
        await _races(ours)
    except Unpaid as debt:
        raise StoreBroken(f"not so: {debt}") from None
    finally:
        for key in ("key", "count", "cas", "race", "big", "a:b", "{é}\n*"):
            await ours.delete(key)
            await theirs.delete(key)


async def _keeps(ours: ScopedState) -> None:
    owes(await ours.get("key") is None, "what was never kept is None")
    owes(await ours.get("key", 5) == 5, "or the default")
    for value in (False, 0, "", "é\n", [1, {"a": [None]}], {"b": 1.5, "a": "x"}):
        await ours.set("key", value)
        kept = await ours.get("key")
        owes(kept == value and type(kept) is type(value), f"{value!r} comes back as it was")

    for key in ("a:b", "{é}\n*"):
        await ours.set(key, key, ttl=60.0)
        owes(await ours.get(key) == key, f"{key!r} is a key like others")

    big = "x" * (MAX_STATE_VALUE_BYTES - 2)
    await ours.set("big", big)
    owes(await ours.get("big") == big, "a value may have as many bytes as it may")
    owes(await ours.delete("key"), "what is dropped was there")
    owes(not await ours.delete("key"), "and then is no more")
    owes(await ours.get("key") is None, "nor found")


async def _keeps_apart(ours: ScopedState, theirs: ScopedState) -> None:
    await ours.set("key", "ours")
    owes(await theirs.get("key") is None, "another tenant does not see it")
    await theirs.set("key", "theirs")
    owes(await ours.get("key") == "ours", "nor overwrite it")
    owes(await theirs.delete("key") and await ours.get("key") == "ours", "nor drop it")


async def _counts(ours: ScopedState) -> None:
    owes(await ours.increment("count") == 1, "a counter begins at 0")
    owes(await ours.increment("count", -3, ttl=60.0) == -2, "and goes both ways")
    owes(await ours.get("count") == -2, "and is a value like others")
    await ours.set("count", MAX_STATE_INTEGER)
    await _refuses_to_count(ours, "count")
    for value in ("1", 1.0, True, [1]):
        await ours.set("count", value)
        await _refuses_to_count(ours, "count")


async def _refuses_to_count(ours: ScopedState, key: str) -> None:
    before = await ours.get(key)
    try:
        await ours.increment(key)
    except ValueError:
        owes(await ours.get(key) == before, "what cannot be counted stays")
    else:
        owes(holds=False, duty=f"{before!r} cannot be counted up")


async def _compares(ours: ScopedState) -> None:
    owes(not await ours.compare_and_set("cas", 1, 2), "nothing is not 1")
    owes(await ours.compare_and_set("cas", None, {"a": 1, "b": 2}), "nothing is None")
    owes(not await ours.compare_and_set("cas", None, 2), "something is not")
    owes(await ours.compare_and_set("cas", {"b": 2, "a": 1}, 3, ttl=60.0), "order is no value")
    owes(await ours.get("cas") == 3, "what was set is kept")


async def _races(ours: ScopedState) -> None:
    won: list[bool] = []

    async def race(number: int) -> None:
        won.append(await ours.compare_and_set("race", None, number))
        await ours.increment("count")

    await ours.set("count", 0)
    async with anyio.create_task_group() as group:
        for number in range(CONCURRENT):
            group.start_soon(race, number)

    owes(sum(won) == 1, "one of many that race wins")
    owes(await ours.get("count") == CONCURRENT, "and no count is lost")
