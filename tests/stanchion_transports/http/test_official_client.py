"""The official client over HTTP, in both eras."""

from __future__ import annotations

from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from stanchion import Server, Tool

from .peer import serving

MODES = ["legacy", "2026-07-28", "auto"]


@pytest.fixture(params=["h11", "httptools"])
def parser(request):
    """Both of uvicorn's parsers."""
    return request.param


@pytest.fixture(params=MODES)
def mode(request):
    """How the client finds the era."""
    return request.param


@asynccontextmanager
async def connected(server, mode, **options):
    """Serve, and give an official client that is connected."""
    async with serving(server, **options) as connect:
        network = httpx2.AsyncClient(trust_env=False, timeout=30)
        transport = streamable_http_client(connect.url, http_client=network)
        async with network, Client(transport, mode=mode) as client:
            yield client


async def test_it_lists_and_calls(desk, mode, parser):
    """Tools, a result, a tool's own failure, a crash, and a tool that does not exist."""
    async with connected(desk.server, mode, parser=parser) as client:
        listed = await client.list_tools()
        assert {"echo", "hold", "steps"} <= {tool.name for tool in listed.tools}
        result = await client.call_tool("echo", {"text": "hello"})
        assert result.content[0].text == "hello"
        assert not result.is_error
        failed = await client.call_tool("late")
        assert failed.is_error
        assert failed.content[0].text == "too late for a status"
        crashed = await client.call_tool("leave")
        assert crashed.is_error
        assert "Internal error" in crashed.content[0].text
        invalid = await client.call_tool("echo", {"text": 7})
        assert invalid.is_error
        with pytest.raises(MCPError, match="nope"):
            await client.call_tool("nope")

        assert (await client.call_tool("echo", {"text": "still"})).content[0].text == "still"


async def test_it_is_told_the_progress(desk, mode):
    """Every step, in order, before the result."""
    seen = []

    async def on_progress(progress, total, message):
        seen.append((progress, total))

    async with connected(desk.server, mode) as client:
        result = await client.call_tool("steps", {"count": 4}, progress_callback=on_progress)
        assert result.content[0].text == "done"

    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


async def test_it_reads_what_a_mounted_tool_streams(desk, mode):
    """Text chunks are its progress messages, and the result is whole."""
    seen = []

    async def on_progress(progress, total, message):
        seen.append(message)

    async def speak(arguments, call):
        async with call.stream() as stream:
            for word in ("one ", "two"):
                await stream.send(word)

        return "one two"

    speaker = Server("speaker")
    speaker.add_tool(Tool("speak", speak))
    desk.server.mount(speaker, "desk/")
    async with connected(desk.server, mode) as client:
        assert "desk/speak" in {tool.name for tool in (await client.list_tools()).tools}
        result = await client.call_tool("desk/speak", progress_callback=on_progress)
        assert result.content[0].text == "one two"

    assert seen == ["one ", "two"]


async def test_names_and_texts_of_any_language(desk, mode):
    """A name beyond ASCII travels in a header as base64, and texts in bodies as they are."""
    desk.server.tool(name="plain.name/v1")(lambda: "named")
    async with connected(desk.server, mode) as client:
        assert (await client.call_tool("plain.name/v1")).content[0].text == "named"
        text = "日本 \u2028 \U0001f600 é"
        assert (await client.call_tool("echo", {"text": text})).content[0].text == text
        with pytest.raises(MCPError):
            await client.call_tool("日本")


async def test_a_call_that_it_gives_up_is_cancelled(desk, mode):
    """The tool ends, and the next call is served."""
    async with connected(desk.server, mode) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "hold")
            await desk.started.wait()
            group.cancel_scope.cancel()

        while not desk.cancelled:
            await anyio.lowlevel.checkpoint()

        assert (await client.call_tool("echo", {"text": "x"})).content[0].text == "x"


async def test_without_sessions(desk, mode):
    """A server that keeps no sessions serves it as well."""
    async with connected(desk.server, mode, sessions=False) as client:
        assert (await client.call_tool("echo", {"text": "x"})).content[0].text == "x"


async def test_two_clients_at_once(desk, mode):
    """Both start their ids from the same number, and each gets its own answer."""
    async with serving(desk.server) as connect:
        answers = {}

        async def use(name):
            network = httpx2.AsyncClient(trust_env=False, timeout=30)
            transport = streamable_http_client(connect.url, http_client=network)
            async with network, Client(transport, mode=mode) as client:
                result = await client.call_tool("hold", {"name": name})
                answers[name] = result.content[0].text

        async with anyio.create_task_group() as group:
            group.start_soon(use, "one")
            group.start_soon(use, "two")
            while len(desk.server.kernel.running) < 2:
                await anyio.lowlevel.checkpoint()

            desk.release.set()

    assert answers == {"one": "one released", "two": "two released"}
