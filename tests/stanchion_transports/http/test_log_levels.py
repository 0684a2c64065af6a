"""Log levels over HTTP: kept per session, found by all its requests, and bounded."""

from __future__ import annotations

import anyio
import pytest

from stanchion import Call, Server

from .peer import LEGACY, body_of, legacy_call, modern, serving

META_LEVEL = "io.modelcontextprotocol/logLevel"


def set_level(level):
    """Make the body that sets the session's level."""
    return body_of(id=7, method="logging/setLevel", params={"level": level})


@pytest.fixture
def server():
    """One tool that logs at two levels."""
    server = Server("s")

    @server.tool
    async def talk(call: Call) -> str:
        await call.log("info", "low")
        await call.log("error", "high")
        return "said"

    return server


def said(answer):
    """Give what a stream's log messages said, in order."""
    messages = [each for each in answer.events if "method" in each]
    assert all(each["method"] == "notifications/message" for each in messages)
    return [each["params"]["data"] for each in messages]


async def test_a_session_keeps_its_level_and_no_other_has_it(server):
    """The level is found by later requests on other connections, and by this session only."""
    async with serving(server) as connect, connect() as one, connect() as other:
        loud, quiet = await one.start_session(), await one.start_session()
        assert said(await one.ask(quiet, legacy_call("talk"))) == ["low", "high"]
        assert (await one.ask(quiet, set_level("error"))).json["result"] == {}
        assert said(await other.ask(quiet, legacy_call("talk"))) == ["high"]
        assert said(await other.ask(loud, legacy_call("talk"))) == ["low", "high"]
        await one.ask(quiet, set_level("emergency"))
        answer = await one.ask(quiet, legacy_call("talk"))
        assert answer.headers["content-type"] == "application/json"


async def test_an_invalid_level_is_refused(server):
    """The answer is -32602, and the level stays as it was."""
    async with serving(server) as connect, connect() as wire:
        session = await wire.start_session()
        assert (await wire.ask(session, set_level("loud"))).error == -32602
        assert said(await wire.ask(session, legacy_call("talk"))) == ["low", "high"]


async def test_a_running_call_heeds_a_level_that_another_request_sets():
    """The level counts from the moment that it is set, on every connection of the session."""
    server, started, may_go_on = Server("s"), anyio.Event(), anyio.Event()

    @server.tool
    async def work(call: Call) -> str:
        started.set()
        await may_go_on.wait()
        await call.log("info", "low")
        await call.log("error", "high")
        return "done"

    async with serving(server) as connect, connect() as one, connect() as other:
        session = await one.start_session()
        await one.send(session, legacy_call("work"))
        await started.wait()
        await other.ask(session, set_level("error"))
        may_go_on.set()
        assert said(await one.answer()) == ["high"]


async def test_without_sessions_there_is_no_level_to_set(server):
    """A level that the next request would not find is not confirmed; `info` is what counts."""
    async with serving(server, sessions=False) as connect, connect() as wire:
        fields = {"mcp-protocol-version": LEGACY}
        assert (await wire.ask(fields, set_level("error"))).error == -32601
        assert said(await wire.ask(fields, legacy_call("talk"))) == ["low", "high"]


async def test_a_modern_request_names_its_level(server):
    """On its own stream, and for this request alone."""
    async with serving(server) as connect, connect() as wire:
        for level, expected in [("debug", ["low", "high"]), ("error", ["high"])]:
            params = {"name": "talk", "arguments": {}}
            fields, body = modern("tools/call", params, headers={"mcp-name": "talk"})
            asking = body.replace(b'"_meta":{', b'"_meta":{"%b":"%b",' % (
                META_LEVEL.encode(), level.encode()
            ))  # fmt: skip
            assert said(await wire.ask(fields, asking)) == expected
            silent = await wire.ask(fields, body)
            assert silent.headers["content-type"] == "application/json"
