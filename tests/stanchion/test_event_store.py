"""The event store in memory: what it keeps, what it gives up, and that it says so."""

from __future__ import annotations

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import ConfigurationError, Event, MemoryEventStore
from stanchion.event_store import EVENT_COST, MIN_BYTES
from stanchion_testing import FakeClock, check_event_store


async def test_contract():
    """It does what every event store owes."""
    await check_event_store(MemoryEventStore())


async def append(store, session, stream, *frames, first=0, last=False):
    """Append frames, the last of them as the stream's end if *last*."""
    for number, frame in enumerate(frames, first):
        end = last and number == first + len(frames) - 1
        await store.append(session, stream, Event(number, frame, end))


def numbers(events):
    """Give the numbers of events, or None where they cannot be told."""
    return None if events is None else [event.number for event in events]


async def test_an_ended_stream_is_kept_for_a_while():
    """An open one is kept as long as there is room."""
    clock = FakeClock()
    store = MemoryEventStore(ttl=10, clock=clock)
    await append(store, "s", "ended", b"a", b"b", last=True)
    await append(store, "s", "open", b"a")
    clock.advance(9)
    assert numbers(await store.after("s", "ended", 0)) == [1]
    clock.advance(1)
    assert await store.after("s", "ended", 0) is None
    assert numbers(await store.after("s", "open", -1)) == [0]
    assert store.streams == 1


async def test_a_session_gives_up_its_own_oldest_stream():
    """And not that of another, whoever streams more."""
    store = MemoryEventStore(max_session_bytes=4 * EVENT_COST)
    await append(store, "quiet", "a", b"")
    await append(store, "loud", "a", b"")
    await append(store, "loud", "b", b"")
    await append(store, "loud", "c", b"")
    assert await store.after("loud", "a", -1) is None
    assert numbers(await store.after("loud", "c", -1)) == [0]
    assert numbers(await store.after("quiet", "a", -1)) == [0]


async def test_the_store_gives_up_the_stream_that_was_still_for_longest():
    """Of whichever session."""
    store = MemoryEventStore(max_bytes=6 * EVENT_COST)
    for session in "abc":
        await append(store, session, "s", b"")

    await append(store, "a", "s", b"", first=1)
    assert await store.after("b", "s", -1) is None
    assert numbers(await store.after("a", "s", -1)) == [0, 1]
    assert numbers(await store.after("c", "s", -1)) == [0]


async def test_a_long_stream_gives_up_its_beginning():
    """Whoever has seen that much can resume, and nobody else."""
    store = MemoryEventStore(max_session_bytes=5 * EVENT_COST)
    await append(store, "s", "long", *[b""] * 10)
    assert await store.after("s", "long", 4) is None
    assert numbers(await store.after("s", "long", 5)) == [6, 7, 8, 9]
    assert numbers(await store.after("s", "long", 9)) == []


async def test_an_event_that_is_too_large_is_not_kept():
    """Neither is what came before it of any use then; what follows is kept."""
    store = MemoryEventStore(max_session_bytes=MIN_BYTES)
    await append(store, "s", "a", b"", b"x" * MIN_BYTES)
    assert await store.after("s", "a", 0) is None
    assert numbers(await store.after("s", "a", 1)) == []
    await append(store, "s", "a", b"y", first=2)
    assert numbers(await store.after("s", "a", 1)) == [2]
    assert await store.after("s", "a", 0) is None


async def test_a_stream_that_was_given_up_while_open_starts_again():
    """What came before is missing, and whoever missed it is told so."""
    store = MemoryEventStore()
    await append(store, "s", "a", b"", b"")
    await store.forget("s")
    await append(store, "s", "a", b"", first=2)
    assert await store.after("s", "a", 0) is None
    assert numbers(await store.after("s", "a", 1)) == [2]


async def test_whoever_waits_is_woken_when_the_stream_is_given_up():
    """Rather than left waiting for what will never come."""
    store = MemoryEventStore(max_session_bytes=MIN_BYTES)
    await append(store, "s", "a", b"")
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(store.wait, "s", "a", 0)
            await anyio.wait_all_tasks_blocked()
            await append(store, "s", "b", b"", b"")
            await append(store, "s", "c", b"")

    assert await store.after("s", "a", 0) is None


@pytest.mark.parametrize(
    "options",
    [{"max_bytes": MIN_BYTES - 1}, {"max_session_bytes": 0}, {"ttl": 0}, {"ttl": float("nan")}],
)
def test_numbers_out_of_range_are_refused(options):
    """With what would be right."""
    with pytest.raises(ConfigurationError, match="at least 1024"):
        MemoryEventStore(**options)


STEPS = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.sampled_from("xyz"),
        st.integers(0, 3 * MIN_BYTES),
        st.booleans(),
        st.booleans(),
    ),
    max_size=60,
)


@given(STEPS)
def test_it_never_skips_and_never_overflows(steps):
    """Whatever is appended: it gives all that follows or says that it cannot, within its bounds."""

    async def run():
        clock = FakeClock()
        store = MemoryEventStore(
            max_bytes=8 * MIN_BYTES, max_session_bytes=4 * MIN_BYTES, ttl=5, clock=clock
        )
        sent = {}
        for session, stream, size, last, forget in steps:
            history = sent.setdefault((session, stream), [])
            event = Event(len(history), b"x" * size, last)
            history.append(event)
            await store.append(session, stream, event)
            if forget and size % 7 == 0:
                await store.forget(session)

            clock.advance(1)
            assert store.size <= 8 * MIN_BYTES
            assert store.streams <= 6
            for key, events in sent.items():
                for number in range(-1, len(events)):
                    found = await store.after(*key, number)
                    assert found is None or list(found) == events[number + 1 :]

        for session in "ab":
            await store.forget(session)

        assert (store.size, store.streams) == (0, 0)

    anyio.run(run)
