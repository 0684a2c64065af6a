"""The ids of events: one spelling each, and nothing else is one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stanchion import Event
from stanchion_transports.http.resumable import encode_event, event_id, read_event_id

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
