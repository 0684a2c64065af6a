"""Two processes behind a balancer that knows no sessions, and the official client (S1)."""

from __future__ import annotations

import itertools

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from .conftest import PATIENCE, running
from .ears import Ears
from .test_tools import text

pytestmark = pytest.mark.xdist_group("end_to_end")

KEY = "a key of at least thirty-two bytes"


class RoundRobin(httpx2.AsyncHTTPTransport):
    """Sends each request to the next address."""

    def __init__(self, urls):
        super().__init__()
        self.used = []
        self._ports = itertools.cycle(httpx2.URL(url).port for url in urls)

    async def handle_async_request(self, request):
        port = next(self._ports)
        self.used.append(port)
        request.url = request.url.copy_with(port=port)
        request.headers["host"] = f"127.0.0.1:{port}"
        return await super().handle_async_request(request)


@pytest.fixture(scope="module")
def replicas():
    """The addresses of two processes with one key."""
    with running(KEY) as (_, one), running(KEY) as (_, two):
        yield [one["http"], two["http"]]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_any_replica_answers_any_request(mode, replicas):
    """A handshake here and a call there; in the modern era also the rounds of one call."""
    balancer, ears = RoundRobin(replicas), Ears()
    network = httpx2.AsyncClient(transport=balancer, timeout=PATIENCE)
    client = Client(
        streamable_http_client(replicas[0], http_client=network),
        mode=mode,
        cache=None,
        elicitation_callback=ears.elicit,
        sampling_callback=ears.sample,
        list_roots_callback=ears.roots,
    )
    async with network, client:
        for number in range(10):
            result = await client.call_tool("in_sequence", {"number": number})
            assert result.structured_content == {"words": f"it is {number * 4}"}
            first = await client.list_tools()
            assert (await client.list_tools(cursor=first.next_cursor)).tools

        if mode == "auto":
            assert text(await client.call_tool("ask_in_turn")) == "re: Greet Ada; file:///srv"

    assert len(set(balancer.used)) == 2
