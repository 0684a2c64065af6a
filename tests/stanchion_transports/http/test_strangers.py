"""A session id in the hands of somebody else is worth nothing, whatever is sent with it (A8)."""

from __future__ import annotations

import pytest

from .peer import body_of, by_token, initialize, legacy_call, serving

MESSAGES = {
    "a call": legacy_call("echo", text="x"),
    "a ping": body_of(id=1, method="ping"),
    "a list": body_of(id=1, method="tools/list"),
    "a log level": body_of(id=1, method="logging/setLevel", params={"level": "debug"}),
    "a notification": body_of(method="notifications/initialized"),
    "a cancellation": body_of(method="notifications/cancelled", params={"requestId": 1}),
    "an answer": body_of(id="x", result={}),
}


@pytest.mark.parametrize("message", MESSAGES)
async def test_a_stolen_session_is_not_found(desk, message):
    """As one that never was; its owner goes on, and his calls are not touched."""
    async with serving(desk.server, authenticate=by_token) as connect, connect() as wire:
        ada, bob = {"authorization": "Bearer ada"}, {"authorization": "Bearer bob"}
        begun = await wire.ask(ada, initialize())
        session = {"mcp-session-id": begun.headers["mcp-session-id"]}
        stolen = await wire.ask(session | bob, MESSAGES[message])
        made_up = await wire.ask({"mcp-session-id": "x"} | bob, MESSAGES[message])
        assert (stolen.status, stolen.body) == (made_up.status, made_up.body) == (404, stolen.body)
        assert (await wire.ask(session | bob, method="DELETE")).status == 404
        assert (await wire.ask(session, MESSAGES[message])).status == 401
        answer = await wire.ask(session | ada, legacy_call("who"))
        assert answer.text == "ada"
