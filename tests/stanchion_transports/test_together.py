"""Several transports on one started server, at once."""

from __future__ import annotations

import pytest

from stanchion import Call, Server
from stanchion_testing import connect

from .http.peer import serving as serving_http
from .http.peer import tool_call
from .pipe_peer import call, text
from .pipe_peer import serving as serving_pipes


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request):
    """uvicorn runs on asyncio only."""
    return "asyncio", {"use_uvloop": request.param}


async def test_one_server_is_served_over_everything_at_once():
    """The same tool answers on each, one that ends leaves the others, the last ends the server."""
    server = Server("everywhere")
    starts = []

    @server.tool
    async def where(call: Call) -> str:
        starts.append(call.peer.transport)
        return call.peer.transport

    over_http = tool_call("where")
    async with server:
        async with serving_http(server) as http, serving_http(server, path="/two") as second:
            async with (
                serving_pipes(server) as pipe,
                connect(server, era="legacy") as peer,
                http() as wire,
                second() as other,
            ):
                assert (await wire.ask(*over_http)).text == "http"
                assert (await other.ask(*over_http)).text == "http"
                await pipe.send(call(1, "where"))
                assert text(await pipe.receive()) == "stdio"
                assert (await peer.call_tool("where")).text == "memory"

            async with http() as wire:  # the pipe and the peer have gone
                assert (await wire.ask(*over_http)).text == "http"

        async with connect(server) as peer:  # HTTP has gone
            assert (await peer.call_tool("where")).text == "memory"

    assert server.draining
    assert starts == ["http", "http", "stdio", "memory", "http", "memory"]
