"""Header fields as ASGI gives them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion_transports.http.headers import Headers, repeated_routing_header

FIELDS = [(b"host", b"localhost"), (b"mcp-name", b" \techo\t "), (b"x-name", b"\xe9")]


def test_a_field_is_read_by_its_name():
    """Values are decoded as Latin-1 and lose spaces and tabs around them."""
    headers = Headers(FIELDS)
    assert headers["host"] == "localhost"
    assert headers["mcp-name"] == headers.get("mcp-name") == "echo"
    assert headers["x-name"] == "é"
    assert headers.raw[b"mcp-name"] == b" \techo\t "


def test_only_spaces_and_tabs_are_stripped():
    """Other white space is a part of the value, which is then refused as one."""
    assert Headers([(b"a", b"\x0b\x85\xa0x\x0c")])["a"] == "\x0b\x85\xa0x\x0c"


def test_a_missing_field():
    """It is a KeyError, a default, or not contained, as in every mapping."""
    headers = Headers(FIELDS)
    assert headers.get("nope") is None
    assert headers.get("nope", "") == ""
    assert "nope" not in headers
    assert "host" in headers
    assert 7 not in headers
    assert "\u20ac" not in headers
    with pytest.raises(KeyError):
        headers["nope"]


def test_it_is_a_mapping():
    """Names are iterated as text, and all of it can be made a dict."""
    assert dict(Headers(FIELDS)) == {"host": "localhost", "mcp-name": "echo", "x-name": "é"}
    assert len(Headers(FIELDS)) == 3


def test_repeated_fields_are_joined():
    """None of them hides another, so a check sees them all."""
    raw = [(b"host", b"localhost"), (b"accept", b"a"), (b"host", b"evil"), (b"accept", b"b")]
    headers = Headers(raw)
    assert headers["host"] == "localhost, evil"
    assert headers["accept"] == "a, b"
    assert len(headers) == 2


@pytest.mark.parametrize(
    "name",
    [b"mcp-protocol-version", b"mcp-method", b"mcp-name", b"mcp-session-id", b"mcp-param-region"],
)
def test_a_repeated_routing_header_is_named(name):
    """Every header that a proxy may route by, even where its values agree."""
    raw = [(b"host", b"h"), (name, b"same"), (b"host", b"h"), (name, b"same")]
    assert repeated_routing_header(raw) == name.decode()


def test_other_fields_may_repeat():
    """A list may be split over several fields."""
    assert repeated_routing_header([(b"accept", b"a"), (b"accept", b"b")]) is None
    assert repeated_routing_header(FIELDS) is None


@given(
    st.lists(
        st.tuples(
            st.sampled_from([b"mcp-name", b"mcp-param-a", b"accept", b"x"]),
            st.binary(max_size=4),
        )
    )
)
def test_every_repetition_is_found(raw):
    """A routing header is named if and only if one is sent twice."""
    names = [name for name, _ in raw]
    repeated = {name.decode() for name in names if names.count(name) > 1 and b"mcp" in name}
    found = repeated_routing_header(raw)
    assert found in repeated if repeated else found is None
    assert len(Headers(raw)) == len(set(names))
