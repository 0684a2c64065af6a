"""The official client is sent log messages, tells, and negotiates extensions, in both eras."""

from __future__ import annotations

from contextlib import asynccontextmanager

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client import advertise
from mcp.client.streamable_http import streamable_http_client

from stanchion import Call, Server

from .peer import serving

THING = "com.example/thing"

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
"""Roots and logging are deprecated from 2026-07-28 on (SEP-2577), and served all the same."""


@pytest.fixture(params=["legacy", "2026-07-28", "auto"])
def mode(request):
    """How the client finds the era."""
    return request.param


@asynccontextmanager
async def connected(server, mode, **options):
    """Serve, and give an official client that is connected."""
    async with serving(server) as connect:
        network = httpx2.AsyncClient(trust_env=False, timeout=30)
        transport = streamable_http_client(connect.url, http_client=network)
        async with network, Client(transport, mode=mode, **options) as client:
            yield client


async def test_it_is_sent_the_log_messages_it_wants(mode):
    """A legacy client sets the level, a modern one names it in each request."""
    server, came = Server("s"), []

    @server.tool
    async def talk(call: Call) -> str:
        for level in ("debug", "info", "warning", "error"):
            await call.log(level, {"said": level}, "voice")

        return "said"

    async def on_log(params):
        came.append((params.level, params.data, params.logger))

    level = {} if mode == "legacy" else {"log_level": "warning"}
    async with connected(server, mode, logging_callback=on_log, **level) as client:
        if mode == "legacy":
            assert client.server_capabilities.logging is not None
            await client.set_logging_level("warning")

        assert (await client.call_tool("talk")).content[0].text == "said"

    assert came == [(level, {"said": level}, "voice") for level in ("warning", "error")]


async def test_it_tells_that_its_roots_have_changed():
    """A notification that only legacy clients have."""
    server, came = Server("s"), anyio.Event()

    @server.on_notification("notifications/roots/list_changed")
    async def listen(note):
        came.set()

    async with connected(server, "legacy") as client:
        await client.send_roots_list_changed()
        await came.wait()

    assert server.notification_counts.finished == 1


async def test_both_sides_declare_an_extension(mode):
    """The server sees the client's settings; the client that asks a modern server sees its."""
    server, found = Server("s"), []
    server.extension(THING, {"depth": 2})

    @server.tool
    async def look(call: Call) -> str:
        found.append(call.peer.extension(THING))
        return "seen"

    async with connected(server, mode, extensions=[advertise(THING, {"width": 3})]) as client:
        await client.call_tool("look")
        declared = client.server_capabilities.extensions

    # A client that is told the version beforehand asks for no capabilities.
    assert declared == ({THING: {"depth": 2}} if mode == "auto" else None)

    assert found == [{"width": 3}]
