"""The ids of events: one spelling each, and nothing else is one."""

from __future__ import annotations

import anyio
from hypothesis import given
from hypothesis import strategies as st

from stanchion import Connection, Event, MemoryEventStore
from stanchion_transports.http.resumable import (
    Resumable,
    encode_event,
    event_id,
    read_event_id,
)
from stanchion_transports.http.sessions import LiveSession
from stanchion_transports.http.tokens import Token

from .peer import event_of, ids_of


@given(st.from_regex(r"(post|get)\.[0-9a-f]{16}", fullmatch=True), st.integers(0, 10**10 - 1))
def test_an_id_says_what_it_was_made_of(stream, number):
    """The stream and the number in it."""
    assert read_event_id(event_id(stream, number)) == (stream, number)


@given(st.text(max_size=40))
def test_whatever_comes_is_an_id_or_none(text):
    """Nothing crashes, and a number is in ASCII digits."""
    found = read_event_id(text)
    assert found is None or (found[0] and 0 <= found[1] < 10**10)


def test_an_event_with_and_without_a_message():
    """Without one it is an id with empty text."""
    assert encode_event("get.1", Event(0, b"")) == b"id: get.1-0\ndata: \n\n"
    encoded = encode_event("post.1", Event(7, b'{"a":1}'))
    assert ids_of(encoded) == ["post.1-7"]
    assert event_of(encoded) == {"a": 1}


async def gone():
    """Say that the client has gone."""
    return {"type": "http.disconnect"}


async def unheard(message):
    """Send to nobody."""


async def test_patience_is_for_clients_that_are_away():
    """A call that a client follows goes on however long it takes; then it counts anew."""
    session = LiveSession(Token("s", 2_000_000_000, "2025-11-25", {}, {}, ""))
    exchange = Resumable(gone, unheard, 15.0, Connection("http"))
    exchange.bind(session, MemoryEventStore(), patience=10.0)
    await exchange.notify(b"{}")
    await exchange.watch_disconnect()
    now = anyio.current_time()
    assert session.lost == {exchange.stream: exchange}
    assert not exchange.is_silent(now + 9)
    assert exchange.is_silent(now + 11)
    with exchange.followed():
        assert not exchange.is_silent(now + 10_000)

    assert not exchange.is_silent(anyio.current_time() + 9)
    assert exchange.is_silent(anyio.current_time() + 11)
