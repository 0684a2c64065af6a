"""JSON-only HTTP: one body for each request, and never a stream."""

from __future__ import annotations

import pytest

from stanchion import Connection
from stanchion_transports.http.exchange import Exchange
from stanchion_transports.http.plain import Plain

from .peer import body_of, legacy_call, serving, tool_call

ONLY_JSON = {"accept": "application/json"}


@pytest.fixture
async def connect(desk):
    async with serving(desk.server, json_only=True) as connect:
        yield connect


@pytest.mark.parametrize("accept", ["application/json", "application/*", "*/*", None])
async def test_a_client_need_accept_nothing_but_json(connect, accept):
    """In both eras."""
    async with connect() as wire:
        answer = await wire.ask(*tool_call("echo", text="x", headers={"accept": accept}))
        assert answer.text == "x"
        session = await wire.start_session() | {"accept": accept}
        assert (await wire.ask(session, legacy_call("echo", text="x"))).text == "x"


async def test_json_itself_must_be_accepted(connect):
    """A client that wants a stream alone is told that there is none."""
    async with connect() as wire:
        answer = await wire.ask(
            *tool_call("echo", text="x", headers={"accept": "text/event-stream"})
        )
        assert answer.status == 406
        assert "event-stream" not in answer.json["error"]["message"]


async def test_progress_is_dropped(connect):
    """What would have come before the answer does not, and the answer is one body."""
    async with connect() as wire:
        answer = await wire.ask(*tool_call("steps", count=5, progress="t", headers=ONLY_JSON))
        assert answer.headers["content-type"] == "application/json"
        assert answer.text == "done"


async def test_an_error_after_progress_keeps_its_form(connect):
    """There is no stream that would have been committed before it."""
    async with connect() as wire:
        answer = await wire.ask(*tool_call("late", progress="t", headers=ONLY_JSON))
        assert answer.json["result"]["isError"]


def test_a_long_silence_wants_no_sign_of_life():
    """A comment is no JSON, so none is sent, however long a call is silent."""
    now = 1e9
    for kind, silent in [(Exchange, True), (Plain, False)]:
        exchange = kind(None, None, 1.0, Connection("http"))
        exchange.is_silent(0.0)
        assert exchange.is_silent(now) is silent


async def test_a_cancelled_request_gets_an_empty_answer(desk, connect):
    """HTTP wants one, the protocol none: 204."""
    async with connect() as wire, connect() as other:
        session = await wire.start_session()
        await wire.send(session, legacy_call("hold", id=7))
        await desk.started.wait()
        cancel = body_of(method="notifications/cancelled", params={"requestId": 7})
        assert (await other.ask(session, cancel)).status == 202
        answer = await wire.answer()
        assert (answer.status, answer.body) == (204, b"")
        assert desk.cancelled == ["hold"]


async def test_a_batch_of_notifications_is_accepted(connect):
    """As with streams: 202, since nothing wanted an answer."""
    async with connect() as wire:
        session = await wire.start_session("2025-03-26")
        batch = b"[" + body_of(method="notifications/initialized") + b"]"
        assert (await wire.ask(session, batch)).status == 202
