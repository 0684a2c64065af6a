"""WebSocket over a real socket, with a client that is not ours."""

from __future__ import annotations

from functools import partial

import anyio
import orjson
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from stanchion import Call, Server
from stanchion_transports import http

from .test_never_reads import Flooding


@pytest.fixture(
    params=[
        pytest.param(("asyncio", {"use_uvloop": False}), id="asyncio"),
        pytest.param(("asyncio", {"use_uvloop": True}), id="uvloop"),
    ]
)
def anyio_backend(request):
    """Only asyncio, since uvicorn and the client need it."""
    return request.param


INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def request(id, method, params=None):
    """A JSON-RPC request as text."""
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}
    return orjson.dumps(message).decode()


def desk():
    """A server with a quick tool and one that waits until it is cancelled."""
    server = Server("desk", "1")
    waiting, cancelled = anyio.Event(), anyio.Event()

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    async def wait(call: Call) -> str:
        waiting.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    return server, waiting, cancelled


async def serving(group, server, **options):
    """Start serving and give the WebSocket's address."""
    serve = partial(http.serve, server, port=0, websocket_path="/ws", **options)
    url = await group.start(serve)
    return url.replace("http://", "ws://").replace("/mcp", "/ws")


async def test_a_client_shakes_hands_and_calls():
    """A handshake and a call pass in text frames over the subprotocol `mcp`."""
    server, _, _ = desk()
    async with anyio.create_task_group() as group:
        url = await serving(group, server)
        async with connect(url, subprotocols=["mcp"], proxy=None) as socket:
            assert socket.subprotocol == "mcp"
            await socket.send(request(1, "initialize", INITIALIZE))
            assert orjson.loads(await socket.recv())["result"]["serverInfo"]["name"] == "desk"
            await socket.send(
                request(2, "tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
            )
            assert orjson.loads(await socket.recv())["result"]["structuredContent"] == {"result": 3}

        group.cancel_scope.cancel()


async def test_a_client_that_goes_away_cancels_its_call():
    """Closing the socket ends what was asked over it, and the server serves the next client."""
    server, waiting, cancelled = desk()
    async with anyio.create_task_group() as group:
        url = await serving(group, server)
        async with connect(url, subprotocols=["mcp"], proxy=None) as socket:
            await socket.send(request(1, "initialize", INITIALIZE))
            await socket.recv()
            await socket.send(request(2, "tools/call", {"name": "wait"}))
            await waiting.wait()

        await cancelled.wait()
        async with connect(url, subprotocols=["mcp"], proxy=None) as socket:
            await socket.send(request(1, "ping"))
            assert orjson.loads(await socket.recv()) == {"jsonrpc": "2.0", "id": 1, "result": {}}

        group.cancel_scope.cancel()


async def test_a_frame_over_the_limit_closes_the_connection():
    """The limit holds on the wire, before a frame is buffered whole."""
    server, _, _ = desk()
    async with anyio.create_task_group() as group:
        url = await serving(group, server)
        async with connect(url, subprotocols=["mcp"], proxy=None) as socket:
            with pytest.raises(ConnectionClosed) as raised:  # noqa: PT012 # either meets it
                await socket.send("x" * (17 * 1024 * 1024))
                await socket.recv()

        assert raised.value.rcvd.code == 1009
        group.cancel_scope.cancel()


async def test_a_page_of_another_origin_is_refused():
    """The guard of the HTTP endpoint stands before the handshake."""
    server, _, _ = desk()
    async with anyio.create_task_group() as group:
        url = await serving(group, server)
        with pytest.raises(InvalidStatus) as raised:
            async with connect(url, origin="https://evil.example.com", proxy=None):
                pass

        assert raised.value.response.status_code == 403
        group.cancel_scope.cancel()


async def test_a_client_that_never_reads_holds_up_its_own_call_alone():
    """What it does not read waits in bounded buffers, and another client is served."""
    flooding = Flooding()
    options = {"subprotocols": ["mcp"], "proxy": None, "close_timeout": 0.1, "compression": None}
    async with anyio.create_task_group() as group:
        url = await serving(group, flooding.server)
        async with connect(url, **options) as deaf, connect(url, **options) as other:
            await deaf.send(request(1, "initialize", INITIALIZE))
            await other.send(request(1, "initialize", INITIALIZE))
            await other.recv()
            params = {"name": "flood", "arguments": {"kind": "progress"}}
            params["_meta"] = {"progressToken": "token"}
            await deaf.send(request(2, "tools/call", params))
            params = {"name": "echo", "arguments": {"text": "beside"}}
            before = 0
            while not flooding.sent or before != flooding.sent:
                before = flooding.sent
                await other.send(request(3, "tools/call", params))
                assert "beside" in await other.recv()
                await anyio.wait_all_tasks_blocked()

            assert not flooding.overran

        group.cancel_scope.cancel()
