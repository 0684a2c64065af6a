"""A call and a `next` for a layer by itself."""

from __future__ import annotations

import pytest

from stanchion import (
    LATEST_LEGACY_VERSION,
    LATEST_MODERN_VERSION,
    Denied,
    Next,
    Principal,
    Tool,
    ToolResult,
)
from stanchion_testing import make_call, mock_next


async def test_outcomes_in_turn():
    """Each await gives or raises the next outcome, the last one for ever."""
    result = ToolResult("second")
    next = mock_next("first", result, Denied("no"))
    assert isinstance(next, Next)
    assert (await next()).content[0].text == "first"
    assert await next() is result
    for times in (3, 4):
        with pytest.raises(Denied):
            await next()

        assert next.times == times


async def test_default():
    """Without outcomes it gives an empty result, for a plain tool call."""
    next = mock_next()
    assert (await next()).content == ()
    assert next.call.method == "tools/call"


async def test_given_call():
    """`next.call` is the call that was given."""
    call = make_call()
    assert mock_next(call=call).call is call


async def test_counts_awaits():
    """A `next` that was called but not awaited does not count."""
    next = mock_next("x")
    next().close()
    assert next.times == 0


def test_call():
    """A call is what the test says of it, and plain where it says nothing."""
    target = Tool("t", lambda arguments: None)
    principal = Principal("alice", tenant="acme")
    call = make_call(
        target=target,
        arguments={"a": 1},
        meta={"progressToken": 5},
        principal=principal,
        version=LATEST_LEGACY_VERSION,
    )
    assert (call.target, call.target_name, call.arguments) == (target, "t", {"a": 1})
    assert (call.progress_token, call.principal, call.tenant.id) == (5, principal, "acme")
    assert call.peer.version == LATEST_LEGACY_VERSION
    plain = make_call("tools/list", target_name="nope")
    assert (plain.method, plain.target, plain.target_name) == ("tools/list", None, "nope")
    assert (plain.arguments, plain.meta, plain.principal) == ({}, {}, None)
    assert plain.peer.version == LATEST_MODERN_VERSION
