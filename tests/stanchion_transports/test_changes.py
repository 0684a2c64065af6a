"""Changes over every transport that can send them, as frames on its own wire."""

from __future__ import annotations

import orjson
import pytest

from stanchion import Server, Tool

from . import contract_peers
from .pipe_peer import ENVELOPE

ON_ASYNCIO = pytest.mark.parametrize(
    "anyio_backend",
    [("asyncio", {"use_uvloop": False}), ("asyncio", {"use_uvloop": True})],
    ids=["asyncio", "uvloop"],
)
CHANGED = "notifications/tools/list_changed"


@pytest.fixture
def server():
    made = Server("s")
    made.add_tool(tool("first"))
    made.resource("note://one")(lambda: "one")
    return made


def tool(name):
    return Tool(name, lambda arguments: "done", input_schema={"type": "object"})


async def tell(peer, method, params, id=None):
    """Send a message, which is a request if it has an id."""
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    await peer.send(orjson.dumps(message if id is None else {**message, "id": id}))


async def receive(peer):
    return orjson.loads(await peer.receive())


async def listens(transport, server):
    """A modern peer is told of an addition, and of the end of serving."""
    async with getattr(contract_peers, transport)(server) as peer:
        asked = {"toolsListChanged": True, "resourceSubscriptions": ["note://one"]}
        await tell(peer, "subscriptions/listen", {"notifications": asked, "_meta": ENVELOPE}, id=1)
        assert (await receive(peer))["params"]["notifications"] == asked
        server.add_tool(tool("second"))
        assert (await receive(peer))["method"] == CHANGED
        server.notify_resource_updated("note://one")
        assert (await receive(peer))["params"]["uri"] == "note://one"
        await server.drain(10)
        assert (await receive(peer))["result"]["resultType"] == "complete"


async def is_told(transport, server):
    """A legacy peer on a stream is told of an addition, and of a resource it subscribes to."""
    async with getattr(contract_peers, transport)(server) as peer:
        client = {"name": "peer", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        await tell(peer, "initialize", params, id=1)
        declared = (await receive(peer))["result"]["capabilities"]
        assert declared["resources"] == {"listChanged": True, "subscribe": True}
        await tell(peer, "notifications/initialized", {})
        server.add_tool(tool("second"))
        assert (await receive(peer))["method"] == CHANGED
        await tell(peer, "resources/subscribe", {"uri": "note://one"}, id=2)
        assert (await receive(peer))["result"] == {}
        server.notify_resource_updated("note://one")
        assert (await receive(peer))["params"] == {"uri": "note://one"}


@pytest.mark.parametrize("transport", ["memory", "pipes", "stdio_socket", "websocket"])
@pytest.mark.parametrize("talk", [listens, is_told])
async def test_changes(transport, talk, server):
    """In both eras, on every event loop."""
    await talk(transport, server)


@pytest.mark.parametrize(
    ("transport", "talk"),
    [("http", listens), ("http_unix", listens), ("sse", is_told)],
)
@ON_ASYNCIO
async def test_changes_over_uvicorn(transport, talk, server):
    """In the eras that the transport has a stream for, on the event loops that uvicorn knows."""
    await talk(transport, server)
