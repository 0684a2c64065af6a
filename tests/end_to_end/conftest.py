"""The official client, connected in every way that applies: transport by era.

One server over HTTP and one over stdio for each era serve all tests of this folder, so that what
one test leaves behind is found by the next; a client is connected once in each way for each module.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import httpx2
import mcp_types
import pytest
from mcp import Client
from mcp.client import advertise
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from .ears import WAYS, Ears

PROGRAM = str(Path(__file__).with_name("server.py"))
SPEAKING = "com.example/speaking"
PATIENCE = 30
"""Seconds after which a test is given up; nothing is measured against it."""


# Of the module and no wider: anyio keeps one runner while any fixture needs it, and every test
# that came before the fixture's end would run on it, whatever loop it asked for.
@pytest.fixture(scope="module")
def anyio_backend():
    """uvicorn runs on asyncio only; of the module, because the clients are."""
    return "asyncio", {"use_uvloop": False}


@contextmanager
def running(*words, stderr=None):
    """Run the server over HTTP, and give the process and both addresses."""
    command = [sys.executable, PROGRAM, "http", *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=stderr, text=True) as process:
        try:
            url, sse = (process.stdout.readline().strip() for _ in range(2))
            yield process, {"http": url, "sse": sse}
        finally:
            process.kill()


@pytest.fixture(scope="session")
def addresses():
    """Serve over both kinds of HTTP, and give the address of each."""
    with running() as (_, found):
        yield found


def network(headers: Mapping[str, str] | None = None, timeout=None, auth=None):
    """Make an HTTP client that asks no proxy."""
    return httpx2.AsyncClient(headers=headers, timeout=timeout, auth=auth, trust_env=False)


@asynccontextmanager
async def transport_of(way, addresses, ears):
    """Open the official transport of *way*."""
    async with AsyncExitStack() as stack:
        if way.transport == "stdio":
            parameters = StdioServerParameters(
                command=sys.executable, args=[PROGRAM, "stdio"], env=dict(os.environ)
            )
            opened = stdio_client(parameters)
        elif way.transport == "sse":
            opened = sse_client(addresses["sse"], httpx_client_factory=network)
        else:
            sender = await stack.enter_async_context(network(timeout=PATIENCE))
            sender.event_hooks["request"].append(ears.sending)
            opened = streamable_http_client(addresses["http"], http_client=sender)

        yield await stack.enter_async_context(opened)


@pytest.fixture(scope="module", params=WAYS, ids=str)
def way(request):
    """How the client is connected."""
    return request.param


@pytest.fixture(scope="module")
async def connected(way, addresses):
    """A client that can be asked everything, and what it hears."""
    ears = Ears()
    client = Client(
        transport_of(way, addresses, ears),
        mode="legacy" if way.era == "legacy" else "auto",
        cache=None,
        log_level="warning",
        read_timeout_seconds=PATIENCE,
        extensions=[advertise(SPEAKING, {"voice": "low"})],
        elicitation_callback=ears.elicit,
        sampling_callback=ears.sample,
        sampling_capabilities=mcp_types.SamplingCapability(
            tools=mcp_types.SamplingToolsCapability()
        ),
        list_roots_callback=ears.roots,
        logging_callback=ears.log,
        message_handler=ears.hear,
    )
    async with client:
        yield client, ears


@pytest.fixture
def client(connected):
    """The client of this way."""
    return connected[0]


@pytest.fixture
async def ears(connected):
    """What the client of this way hears, from here on."""
    heard = connected[1]
    heard.forget()
    with anyio.fail_after(PATIENCE):
        yield heard
