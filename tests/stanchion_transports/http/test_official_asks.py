"""The official client is asked over HTTP, on real sockets, by one server and by replicas."""

from __future__ import annotations

import itertools
from contextlib import asynccontextmanager

import anyio
import httpx2
import pytest
from mcp import MCPError
from mcp.client.streamable_http import streamable_http_client

from ..asking_server import make_server
from ..official_asked import Asked, check_answers, text_of
from .peer import serving

KEY = b"k" * 32
MODERN = "2026-07-28"


class RoundRobin(httpx2.AsyncBaseTransport):
    """A load balancer: each request goes to the next of some servers.

    Attributes:
        served: Which server got each request, oldest first.
    """

    def __init__(self, *urls):
        self.served = []
        self._next = itertools.cycle(enumerate(map(httpx2.URL, urls)))
        self._network = httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request):
        """Send *request* on."""
        place, url = next(self._next)
        self.served.append(place)
        request.url = request.url.copy_with(port=url.port)
        request.headers["host"] = f"{url.host}:{url.port}"
        return await self._network.handle_async_request(request)

    async def aclose(self):
        """Close all connections."""
        await self._network.aclose()


@asynccontextmanager
async def official(mode, *servers):
    """Serve, and give an official client before all servers, what it was asked, and who served."""
    async with serving(servers[0]) as first, serving(servers[-1]) as last:
        balancer = RoundRobin(first.url, last.url) if len(servers) > 1 else RoundRobin(first.url)
        network = httpx2.AsyncClient(transport=balancer, trust_env=False, timeout=30)
        asked = Asked()
        transport = streamable_http_client(first.url, http_client=network)
        async with network, asked.client(transport, mode) as client:
            yield client, asked, balancer


@pytest.mark.parametrize("mode", ["legacy", MODERN])
async def test_it_answers_all_there_is_to_ask(mode):
    """Forms, pages, its model with tools, and roots."""
    async with official(mode, make_server()) as (client, asked, _):
        await check_answers(client, asked)
        assert asked.ended == (["t1"] if mode == "legacy" else [])


async def test_a_page_that_must_be_opened_first_is_an_error_of_the_legacy_era():
    """It is told which page, and then calls again."""
    async with official("legacy", make_server()) as (client, _, _balancer):
        with pytest.raises(MCPError) as caught:
            await client.call_tool("wall")

        assert caught.value.error.code == -32042
        assert caught.value.error.data["elicitations"][0]["elicitationId"] == "t1"
        assert await text_of(client, "wall") == "welcome"


async def test_a_page_that_must_be_opened_first_is_a_round_of_the_modern_era():
    """The official client opens it, and calls again by itself."""
    async with official(MODERN, make_server()) as (client, asked, _):
        assert await text_of(client, "wall") == "welcome"
        assert [each.message for each in asked.asked] == ["Log in"]


async def test_replicas_with_the_same_keys_share_a_call():
    """Each round of one call is served by another of them."""
    servers = make_server(state_keys=[KEY]), make_server(state_keys=[KEY])
    async with official(MODERN, *servers) as (client, _, balancer):
        before = len(balancer.served)
        assert await text_of(client, "two_rounds") == "Ada at file:///home"
        assert len(set(balancer.served[before:])) == 2


async def test_replicas_with_different_keys_refuse_each_others_rounds():
    """The client is told that the state is not valid there, and no more."""
    servers = make_server(state_keys=[KEY]), make_server(state_keys=[b"o" * 32])
    async with official(MODERN, *servers) as (client, _, _balancer):
        with pytest.raises(MCPError, match="requestState is not valid here") as caught:
            await client.call_tool("two_rounds")

        assert caught.value.error.code == -32602


async def test_replicas_without_keys_refuse_each_others_rounds():
    """Each has a key of its own then."""
    async with official(MODERN, make_server(), make_server()) as (client, _, _balancer):
        with anyio.fail_after(30), pytest.raises(MCPError, match="requestState"):
            await client.call_tool("two_rounds")
