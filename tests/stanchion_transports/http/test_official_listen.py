"""The official client listens to changes over HTTP, and over a stream in the old way."""

from __future__ import annotations

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import PromptsListChanged, ResourceUpdated, ToolsListChanged

from stanchion import Server, Tool

from .peer import serving


def other():
    return Tool("other", lambda arguments: "done", input_schema={"type": "object"})


@pytest.fixture
def server():
    made = Server("s")
    made.tool(echo)
    made.prompt(greet)
    made.resource("note://one")(greet)
    return made


def echo(text: str) -> str:
    return text


def greet() -> str:
    return "hello"


async def test_it_is_told_what_it_asked_for_until_the_server_stops(server):
    """Its listen is honoured, its events come in order, and a drain ends it gracefully."""
    events = []
    async with serving(server) as connect:
        network = httpx2.AsyncClient(trust_env=False, timeout=30)
        transport = streamable_http_client(connect.url, http_client=network)
        async with network, Client(transport, mode="2026-07-28") as client:
            options = {"tools_list_changed": True, "prompts_list_changed": True}
            uris = ["note://one", "note://none"]
            async with client.listen(**options, resource_subscriptions=uris) as subscription:
                assert subscription.honored.resource_subscriptions == ["note://one"]
                server.add_tool(other())
                assert "other" in {tool.name for tool in (await client.list_tools()).tools}
                server.remove_prompt("greet")
                server.notify_resource_updated("note://one")
                async with anyio.create_task_group() as group:
                    group.start_soon(server.drain, 10)
                    events += [event async for event in subscription]

    assert events == [ToolsListChanged(), PromptsListChanged(), ResourceUpdated(uri="note://one")]
