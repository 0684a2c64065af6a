"""Notification handlers and custom methods over HTTP, in both eras."""

from __future__ import annotations

import anyio
import pytest

from stanchion import Server

from .peer import ENVELOPE, MODERN, body_of, by_token, modern, serving

NAME = "vendor/thing"


class Told:
    """A server that keeps what it was told, and a way to wait for it."""

    def __init__(self):
        self.server = Server("s")
        self.notes = []
        self.came = anyio.Event()

        @self.server.on_notification("vendor/told")
        async def listen(note):
            self.notes.append(note)
            self.came.set()

        @self.server.method(NAME)
        async def thing(params: dict) -> dict:
            return {"given": params}


@pytest.fixture
async def told():
    """Made on the event loop, as its event wants."""
    return Told()


async def test_a_session_tells_and_is_answered_at_once(told):
    """The handler knows the session's client and who was found to send it."""
    async with serving(told.server, authenticate=by_token) as connect, connect() as wire:
        token = {"authorization": "Bearer ada"}
        answer = await wire.ask(
            token,
            body_of(
                id=0,
                method="initialize",
                params={
                    "protocolVersion": "2025-11-25",
                    "capabilities": {},
                    "clientInfo": {"name": "teller", "version": "1"},
                },
            ),
        )
        session = {**token, "mcp-session-id": answer.headers["mcp-session-id"]}
        note = body_of(method="vendor/told", params={"what": 1})
        answer = await wire.ask(session, note)
        assert (answer.status, answer.body) == (202, b"")
        await told.came.wait()

    (note,) = told.notes
    assert (note.params, note.principal.subject) == ({"what": 1}, "ada")
    assert (note.peer.transport, note.peer.client["name"]) == ("http", "teller")


async def test_a_modern_client_tells(told):
    """Its envelope says who it is, and its header fields are there."""
    async with serving(told.server) as connect, connect() as wire:
        fields = {"mcp-protocol-version": MODERN, "mcp-method": "vendor/told"}
        answer = await wire.ask(fields, body_of(method="vendor/told", params={"_meta": ENVELOPE}))
        assert (answer.status, answer.body) == (202, b"")
        await told.came.wait()

    (note,) = told.notes
    assert (note.peer.version, note.peer.headers["mcp-method"]) == (MODERN, "vendor/told")


async def test_a_custom_method_is_answered_in_both_eras(told):
    """Within a session, and with the header that repeats the method."""
    async with serving(told.server) as connect, connect() as wire:
        session = await wire.start_session()
        answer = await wire.ask(session, body_of(id=1, method=NAME, params={"a": 1}))
        assert (answer.status, answer.json["result"]) == (200, {"given": {"a": 1}})
        answer = await wire.ask(*modern(NAME, {"a": 1}))
        assert (answer.status, answer.json["result"]["given"]) == (200, {"a": 1})


@pytest.mark.parametrize("header", [None, "vendor/other", "VENDOR/THING"])
async def test_the_method_header_must_agree(told, header):
    """A proxy that routes by it must not be misled about a custom method either."""
    async with serving(told.server) as connect, connect() as wire:
        fields, body = modern(NAME, {"a": 1}, headers={"mcp-method": header})
        answer = await wire.ask(fields, body)
        assert (answer.status, answer.error) == (400, -32020)
