"""What every event store owes, as a check that runs over any of them.

async def test_my_store():
    async with open_my_store() as store:
        await check_event_store(store)
"""

from __future__ import annotations

import secrets
from typing import Final

import anyio

from stanchion import Event, EventStore

from .trial import Unpaid, owes

PATIENCE: Final = 5.0
"""Seconds that a store may take to wake whoever waits for an event."""


class StoreBroken(AssertionError):
    """Raised when a store does not do what it owes."""


async def check_event_store(store: EventStore) -> None:
    """Check that a store does what its base class promises.

    It uses sessions and streams of its own and forgets them. It checks no bound, because each
    store has its own.

    Raises:
        StoreBroken: The store fails.
    """
    session, other = secrets.token_hex(8), secrets.token_hex(8)
    try:
        await _keeps_order(store, session)
        await _keeps_apart(store, session, other)
        await _wakes(store, session)
        await _forgets(store, session, other)
    except Unpaid as debt:
        raise StoreBroken(f"not so: {debt}") from None


async def _keeps_order(store: EventStore, session: str) -> None:
    events = [Event(0, b""), Event(1, b'{"a":1}'), Event(2, b"\xc3\xa9"), Event(3, b"", last=True)]
    owes(await store.after(session, "one", -1) is None, "a stream without an event is not known")
    for event in events:
        await store.append(session, "one", event)

    for number in range(-1, 4):
        after = await store.after(session, "one", number)
        owes(
            after is not None and list(after) == events[number + 1 :],
            f"the events above {number} come back as they were, in order",
        )

    owes(await store.after(session, "one", 4) is None, "a number that was never given is refused")


async def _keeps_apart(store: EventStore, session: str, other: str) -> None:
    await store.append(other, "one", Event(0, b"other session"))
    await store.append(session, "two", Event(0, b"other stream"))
    found = await store.after(session, "two", -1)
    owes(found is not None and [each.frame for each in found] == [b"other stream"], "streams")
    found = await store.after(other, "one", -1)
    owes(found is not None and [each.frame for each in found] == [b"other session"], "sessions")
    owes(await store.after(other, "two", -1) is None, "a session has its own streams only")


async def _wakes(store: EventStore, session: str) -> None:
    await store.append(session, "late", Event(0, b""))
    with anyio.move_on_after(PATIENCE) as waiting:
        await store.wait(session, "late", -1)

    owes(not waiting.cancelled_caught, "what is there already is not waited for")
    with anyio.move_on_after(PATIENCE) as waiting:
        async with anyio.create_task_group() as group:
            group.start_soon(store.wait, session, "late", 0)
            group.start_soon(store.wait, session, "late", 0)
            await anyio.wait_all_tasks_blocked()
            await store.append(session, "late", Event(1, b"here"))

    owes(not waiting.cancelled_caught, "whoever waits is woken by the next event")
    with anyio.move_on_after(PATIENCE) as waiting:
        await store.wait(session, "unknown", 0)

    owes(not waiting.cancelled_caught, "a stream that is not known is not waited for")


async def _forgets(store: EventStore, session: str, other: str) -> None:
    await store.append(session, "open", Event(0, b""))
    with anyio.move_on_after(PATIENCE) as waiting:
        async with anyio.create_task_group() as group:
            group.start_soon(store.wait, session, "open", 0)
            await anyio.wait_all_tasks_blocked()
            await store.forget(session)

    owes(not waiting.cancelled_caught, "whoever waits is woken when the session is forgotten")
    owes(await store.after(session, "one", -1) is None, "a forgotten session has no streams")
    owes(await store.after(other, "one", -1) is not None, "the other sessions keep theirs")
    await store.forget(other)
    await store.forget(other)
