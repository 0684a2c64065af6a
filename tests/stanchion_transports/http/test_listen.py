"""`subscriptions/listen` over HTTP: a stream that stays open, on real sockets."""

from __future__ import annotations

from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import orjson
import pytest

from stanchion import Tool

from .peer import Wire, body_of, by_token, event_of, modern, serving, tool_call

ONLY_JSON = {"accept": "application/json"}
TAG = "io.modelcontextprotocol/subscriptionId"
TOOLS = {"notifications": {"toolsListChanged": True}}


def other(name="other"):
    return Tool(name, lambda arguments: "done", input_schema={"type": "object"})


async def event(wire):
    """Read the next event of a stream."""
    return event_of((await wire.chunk()).removesuffix(b"\n\n"))


async def open_listen(wire, id=1, headers=None, asked=TOOLS):
    """Start a listen and read its acknowledgement."""
    await wire.send(*modern("subscriptions/listen", asked, id=id, headers=headers))
    head = await wire.head()
    assert (head.status, head.headers["content-type"]) == (200, "text/event-stream")
    assert head.headers["x-accel-buffering"] == "no"
    acknowledged = await event(wire)
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    return acknowledged["params"]


@pytest.mark.parametrize("id", [7, "7"])
async def test_a_stream_stays_open_and_tells_what_changes(desk, id):
    """Acknowledged first, every message tagged, while the same client calls beside it."""
    async with serving(desk.server) as connect, connect() as wire, connect() as beside:
        params = await open_listen(wire, id)
        assert params == {"notifications": {"toolsListChanged": True}, "_meta": {TAG: id}}
        for change in (
            lambda: desk.server.add_tool(other()),
            lambda: desk.server.remove_tool("other"),
        ):
            change()
            changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
            assert await event(wire) == {**changed, "params": {"_meta": {TAG: id}}}
            assert (await beside.ask(*tool_call("echo", text="x"))).text == "x"


async def test_closing_the_stream_ends_it(desk):
    """The server notices, and keeps nothing of it."""
    async with serving(desk.server) as connect:
        async with connect() as wire:
            await open_listen(wire)
            assert desk.server.changes.listens == 1

        with anyio.fail_after(10):
            while desk.server.changes.listens:
                await anyio.lowlevel.checkpoint()


async def test_a_drain_answers_it_and_closes_the_stream(desk):
    """With the result, as the last event; calls that run have their time all the same."""
    async with serving(desk.server) as connect, connect() as wire, connect() as beside:
        await open_listen(wire, 7)
        await beside.send(*tool_call("hold"))
        await desk.started.wait()
        async with anyio.create_task_group() as group:
            group.start_soon(desk.server.drain, 60)
            answer = await event(wire)
            assert (answer["id"], answer["result"]["resultType"]) == (7, "complete")
            assert answer["result"]["_meta"][TAG] == 7
            assert await wire.chunk() == b""
            desk.release.set()
            assert (await beside.answer()).text == "hold released"


async def test_serving_that_is_cancelled_answers_it(desk):
    """Before it closes the connection, which it does not wait for."""
    async with connect_and_leave(desk.server) as wire:
        await open_listen(wire, 7)

    answer = await event(wire)
    assert (answer["id"], answer["result"]["resultType"]) == (7, "complete")
    await wire.close()


@asynccontextmanager
async def connect_and_leave(server):
    """Give a connection that is not closed before serving ends."""
    async with serving(server) as connect:
        address, _, path = connect.url.removeprefix("http://").partition("/")
        stream = await anyio.connect_tcp("127.0.0.1", int(address.rpartition(":")[2]))
        yield Wire(stream, "/" + path)


async def test_a_silent_stream_shows_signs_of_life(desk):
    """As those of calls do, so that no proxy cuts it."""
    async with serving(desk.server, keep_alive=0.05) as connect, connect() as wire:
        await open_listen(wire)
        assert (await wire.chunk()).startswith(b":")


async def test_each_client_is_told_in_its_own_name(desk):
    """Who it is decides the request that opened the stream."""
    async with serving(desk.server, authenticate=by_token) as connect, connect() as wire:
        refused = await wire.ask(*modern("subscriptions/listen", TOOLS))
        assert refused.status == 401
        await open_listen(wire, headers={"authorization": "Bearer alice"})
        desk.server.add_tool(other())
        assert (await event(wire))["method"] == "notifications/tools/list_changed"


async def test_a_client_that_never_reads_holds_nobody_up(desk):
    """What changes is told to the others, and of it waits for it no more than one of a kind."""
    async with serving(desk.server) as connect, connect() as wire, connect() as deaf:
        await open_listen(deaf)
        await open_listen(wire)
        for number in range(200):
            desk.server.add_tool(other(f"tool{number}"))
            assert (await event(wire))["method"] == "notifications/tools/list_changed"


@pytest.mark.parametrize("asked", [{"other": True}, {"toolsListChanged": 1}])
async def test_what_is_malformed_is_answered_400(desk, asked):
    """With JSON, as no stream was begun."""
    async with serving(desk.server) as connect, connect() as wire:
        answer = await wire.ask(*modern("subscriptions/listen", {"notifications": asked}))
        assert (answer.status, answer.error) == (400, -32602)


async def test_without_streams_there_is_no_listen(desk):
    """`json_only` answers 404 and declares no such thing."""
    async with serving(desk.server, json_only=True) as connect, connect() as wire:
        answer = await wire.ask(*modern("subscriptions/listen", TOOLS, headers=ONLY_JSON))
        assert (answer.status, answer.error) == (404, -32601)
        discovered = await wire.ask(*modern("server/discover", headers=ONLY_JSON))
        assert discovered.json["result"]["capabilities"]["tools"] == {}


async def test_a_legacy_client_is_not_promised_what_it_cannot_be_sent(desk):
    """Without streams it can neither be told nor subscribe."""
    desk.server.resource("note://one")(lambda: "one")
    async with serving(desk.server, json_only=True) as connect, connect() as wire:
        client = {"name": "peer", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        hello = await wire.ask({}, body_of(id=0, method="initialize", params=params))
        capabilities = hello.json["result"]["capabilities"]
        assert capabilities["tools"] == capabilities["resources"] == {}
        session = {"mcp-session-id": hello.headers["mcp-session-id"]}
        subscribe = body_of(id=1, method="resources/subscribe", params={"uri": "note://one"})
        answer = await wire.ask(session, subscribe)
        assert answer.error == -32601
        assert orjson.loads(answer.body)["id"] == 1
