"""Changes over stdio, through real pipes: both eras, cancellation, and a drain."""

from __future__ import annotations

import anyio

from stanchion import Server, Tool

from .pipe_peer import ENVELOPE, cancel, line, serving

TAG = "io.modelcontextprotocol/subscriptionId"


def offering():
    server = Server("s")
    server.add_tool(other("first"))
    return server


def other(name="other"):
    return Tool(name, lambda arguments: "done", input_schema={"type": "object"})


def listen(id):
    """Make the line of a listen to the list of tools."""
    params = {"notifications": {"toolsListChanged": True}, "_meta": ENVELOPE}
    return line({"jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": params})


async def test_listens_share_the_stream_and_end_by_themselves():
    """Each has its tag; the one that is cancelled is not answered, the other is at the end."""
    server = offering()
    async with serving(server) as peer:
        for id in (1, "1"):
            await peer.send(listen(id))
            acknowledged = await peer.receive()
            assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
            assert acknowledged["params"]["_meta"][TAG] == id

        server.add_tool(other())
        told = [await peer.receive(), await peer.receive()]
        assert {message["params"]["_meta"][TAG] for message in told} == {1, "1"}
        await peer.send(cancel(1))
        await anyio.wait_all_tasks_blocked()
        while server.changes.listens > 1:
            await anyio.lowlevel.checkpoint()

        server.remove_tool("other")
        assert (await peer.receive())["params"]["_meta"][TAG] == "1"
        peer.close_input()
        answer = await peer.receive()
        assert (answer["id"], answer["result"]["resultType"]) == ("1", "complete")


async def test_a_signal_answers_a_listen():
    """The drain does not wait for it, and the peer gets its result."""
    server, stop = offering(), anyio.Event()
    async with serving(server, stop=stop, drain=3600) as peer:
        await peer.send(listen(1))
        await peer.receive()
        stop.set()
        assert (await peer.receive())["result"]["_meta"][TAG] == 1


async def test_a_legacy_peer_is_told_after_the_handshake():
    """The answer to `initialize` is always first."""
    server = offering()
    async with serving(server) as peer:
        client = {"name": "pipe", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        await peer.send(line({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}))
        hello = await peer.receive()
        assert hello["result"]["capabilities"]["tools"] == {"listChanged": True}
        server.add_tool(other())
        told = await peer.receive()
        assert told == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
