"""Bytes to a message and back."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion.errors import InvalidRequest, ParseError
from stanchion.wire import (
    MAX_ID_LENGTH,
    Encoded,
    Notification,
    Request,
    Response,
    decode,
    decode_member,
    encode_batch,
    encode_error,
    encode_notification,
    encode_result,
    unicode_text,
)

text = st.text(st.characters(codec="utf-8"))
numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(text, json_values, max_size=4)
ids = st.text(st.characters(codec="utf-8"), max_size=40) | st.integers(-(2**63), 2**64 - 1)


@given(id=ids, method=text.filter(bool), params=st.none() | objects)
def test_a_request_is_read_as_it_was_written(id, method, params):
    """What a peer writes as a request comes out of `decode` unchanged."""
    frame = orjson.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    assert decode(frame) == Request(id, method, params)


@given(method=text.filter(bool), params=objects)
def test_a_notification_survives_the_round_trip(method, params):
    """`decode` gives back what `encode_notification` was given."""
    assert decode(encode_notification(method, params)) == Notification(method, params)
    assert decode(encode_notification(method)) == Notification(method, None)


@given(id=ids, result=objects)
def test_a_result_survives_the_round_trip(id, result):
    """`decode` gives back what `encode_result` was given, encoded already or not."""
    assert decode(encode_result(id, result)) == Response(id, result, None)
    assert decode(encode_result(id, Encoded(orjson.dumps(result)))) == Response(id, result, None)


@given(id=st.none() | ids, code=st.integers(-40000, 600), message=st.text(), detail=objects)
def test_an_error_survives_the_round_trip(id, code, message, detail):
    """`decode` gives back what `encode_error` was given; what is no text is replaced."""
    error = {"code": code, "message": unicode_text(message)}
    assert decode(encode_error(id, code, message)) == Response(id, None, error)
    assert decode(encode_error(id, code, message, detail)) == Response(
        id, None, error | {"data": detail}
    )


@given(st.binary() | st.text().map(lambda raw: raw.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_a_message_or_one_of_two_errors(frame):
    """No bytes raise anything but `ParseError` and `InvalidRequest`."""
    try:
        message = decode(frame)
    except (ParseError, InvalidRequest):
        return

    assert isinstance(message, Request | Notification | Response | list)


@given(json_values)
def test_any_json_is_a_message_or_an_invalid_request(value):
    """No JSON value raises anything but `InvalidRequest`."""
    try:
        message = decode_member(value)
    except InvalidRequest:
        return

    assert isinstance(message, Request | Notification | Response)


members = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | json_values,
        "id": ids | json_values,
        "method": text | json_values,
        "params": objects | json_values,
        "result": objects | json_values,
        "error": objects | json_values,
    },
)


@given(members)
def test_what_is_decoded_has_the_types_it_promises(member):
    """Whatever passes `decode_member` has a legal id, a method with text, and object parts."""
    try:
        message = decode_member(member)
    except InvalidRequest:
        return

    assert member["jsonrpc"] == "2.0"
    if not isinstance(message, Notification):
        assert isinstance(message.id, str | int | None)
        assert not isinstance(message.id, bool)

    if not isinstance(message, Response):
        assert isinstance(message.method, str)
        assert message.method
        assert message.params is None or isinstance(message.params, dict)
    else:
        assert (message.result is None) is not (message.error is None)


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"{",
        b"{}{}",
        b"\xef\xbb\xbf{}",
        b"\xff\xfe",
        b'{"method": "\xed\xa0\x80"}',
        rb'{"method": "\ud800"}',
        b"NaN",
        b'{"id": Infinity}',
        b"[" * 10_000 + b"]" * 10_000,
        b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
        '{"method": "\ud800"}',
    ],
)
def test_what_is_no_json_is_a_parse_error(frame):
    """Broken JSON, a byte order mark, broken UTF-8, lone surrogates and great depth are refused."""
    with pytest.raises(ParseError, match="Parse error") as refused:
        decode(frame)

    assert refused.value.request_id is None


@pytest.mark.parametrize("id", [None, True, False, 1.0, 0.5, [], {}, [1], 10**30])
def test_an_id_that_mcp_does_not_allow_is_refused_without_an_echo(id):
    """Null, booleans, fractions, arrays, objects and numbers beyond 64 bits are no ids."""
    number = str(id).encode() if isinstance(id, int) and not isinstance(id, bool) else None
    frame = b'{"jsonrpc":"2.0","method":"ping","id":' + (number or orjson.dumps(id)) + b"}"
    with pytest.raises(InvalidRequest, match='"id" must be a string or an integer') as refused:
        decode(frame)

    assert refused.value.request_id is None


@pytest.mark.parametrize(
    "id", [0, -1, 2**53 + 1, 2**64 - 1, -(2**63), "", "1", "ü" * MAX_ID_LENGTH]
)
def test_an_id_that_mcp_allows_is_echoed_exactly(id):
    """Integers up to 64 bits and strings come back as they were, type included."""
    request = decode(orjson.dumps({"jsonrpc": "2.0", "id": id, "method": "ping"}))
    echoed = orjson.loads(encode_result(request.id, {}))["id"]
    assert echoed == id
    assert type(echoed) is type(id)


def test_an_overlong_id_is_refused():
    """A string id is bounded, because it is echoed and kept."""
    frame = orjson.dumps({"jsonrpc": "2.0", "id": "x" * (MAX_ID_LENGTH + 1), "method": "ping"})
    with pytest.raises(InvalidRequest, match="longer than 1024"):
        decode(frame)


@pytest.mark.parametrize(
    ("member", "problem"),
    [
        ({"id": 7, "method": "ping"}, "jsonrpc"),
        ({"jsonrpc": "1.0", "id": 7, "method": "ping"}, "jsonrpc"),
        ({"jsonrpc": 2.0, "id": 7, "method": "ping"}, "jsonrpc"),
        ({"jsonrpc": "2.0", "id": 7}, "method"),
        ({"jsonrpc": "2.0", "id": 7, "method": None}, "method"),
        ({"jsonrpc": "2.0", "id": 7, "method": ""}, "method"),
        ({"jsonrpc": "2.0", "id": 7, "method": 5}, "method"),
        ({"jsonrpc": "2.0", "id": 7, "method": "ping", "params": []}, "params"),
        ({"jsonrpc": "2.0", "id": 7, "method": "ping", "params": "x"}, "params"),
        ({"jsonrpc": "2.0", "id": 7, "method": "ping", "params": 0}, "params"),
    ],
)
def test_a_malformed_request_is_refused_under_its_own_id(member, problem):
    """Where the id can be read, the error names it, so that the caller does not wait."""
    with pytest.raises(InvalidRequest, match=problem) as refused:
        decode_member(member)

    assert refused.value.request_id == 7


@pytest.mark.parametrize("value", [None, True, 0, 1.5, "x", []])
def test_what_is_no_object_is_no_message(value):
    """A scalar, or a batch inside a batch, is no message."""
    with pytest.raises(InvalidRequest, match="must be a JSON object"):
        decode_member(value)


@pytest.mark.parametrize(
    "response",
    [
        {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}},
        {"jsonrpc": "1.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "result": {}},
        {"jsonrpc": "2.0", "id": None, "result": {}},
        {"jsonrpc": "2.0", "id": True, "error": {}},
        {"jsonrpc": "2.0", "id": 1, "result": 5},
        {"jsonrpc": "2.0", "id": 1, "error": "no"},
    ],
)
def test_a_malformed_response_is_refused_without_an_id(response):
    """The id of a response is ours, so the refusal does not answer it."""
    with pytest.raises(InvalidRequest) as refused:
        decode_member(response)

    assert refused.value.request_id is None


def test_an_error_may_come_without_an_id():
    """A peer that could not read our id answers with a null id, or none."""
    error = {"code": -32700, "message": "?"}
    assert decode_member({"jsonrpc": "2.0", "error": error}) == Response(None, None, error)
    assert decode_member({"jsonrpc": "2.0", "id": None, "error": error}).id is None


def test_of_duplicate_members_the_last_counts():
    """JSON leaves duplicates open; one reading for everybody keeps proxies and us together."""
    frame = b'{"jsonrpc":"2.0","id":1,"id":2,"method":"a","method":"ping"}'
    assert decode(frame) == Request(2, "ping", None)


def test_null_params_are_no_params():
    """`"params": null` is read as if `params` were left out."""
    frame = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":null}'
    assert decode(frame) == Request(1, "ping", None)


def test_a_batch_is_the_list_of_its_members():
    """`decode` does not look into a batch, so that one bad member does not spoil the others."""
    assert decode(b'[1, {"a": 2}]') == [1, {"a": 2}]
    assert orjson.loads(encode_batch([b'{"a":1}', b"2"])) == [{"a": 1}, 2]


def test_an_error_that_has_no_json_form_is_sent_without_its_detail():
    """An error always becomes a frame, because without one the peer would wait for ever."""
    frame = encode_error(1, -32603, "a\ud800b", {"held": object()})
    assert decode(frame) == Response(1, None, {"code": -32603, "message": "a?b"})


def test_a_result_that_has_no_json_form_is_a_type_error():
    """`encode_result` leaves it to its caller what to answer instead."""
    with pytest.raises(TypeError):
        encode_result(1, {"held": object()})
