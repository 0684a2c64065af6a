"""A peer that never reads: over no transport does it grow memory, or hold up another peer."""

from __future__ import annotations

from contextlib import asynccontextmanager

import anyio
import pytest

from stanchion import Call, Server, Tool
from stanchion_testing.dialogue import Dialogue

from . import contract_peers
from .test_contract import ANY_LOOP, ERAS, ON_ASYNCIO

CHUNK = "x" * 16_384
BOUND = 64 * 1024 * 1024
"""Bytes that a server may have sent and nobody read; the sockets' own buffers are among them."""


class Flooding:
    """A server whose tool says more and more.

    Attributes:
        server: The server.
        sent: Bytes that were sent so far.
        overran: Whether the tool was held up by nothing.
    """

    def __init__(self):
        self.server = Server("flooding")
        self.sent = 0
        self.overran = False
        self.server.tool(self.flood)
        self.server.tool(self.echo)

    async def echo(self, text: str) -> str:
        return text

    async def flood(self, call: Call, kind: str) -> str:
        while self.sent < BOUND:
            self.sent += len(CHUNK)
            if kind == "log":
                await call.log("error", CHUNK)
            else:
                await call.progress(self.sent, message=CHUNK)

        self.overran = True
        return "nothing held it up"


@asynccontextmanager
async def two_peers(transport, era):
    """A peer that floods itself and reads nothing of it, and another one."""
    flooding = Flooding()
    open_transport = getattr(contract_peers, transport)
    async with (
        flooding.server,
        open_transport(flooding.server) as deaf,
        open_transport(flooding.server) as other,
    ):
        silent, heard = Dialogue(deaf, era), Dialogue(other, era)
        await silent.open()
        await heard.open()
        yield flooding, silent, heard
        await deaf.disconnect()


async def check_flood(transport, era, kind):
    """Flood one peer until it is held up, with another served beside it."""
    async with two_peers(transport, era) as (flooding, silent, heard):
        await silent.start_tool("flood", progress="token", kind=kind)
        while not flooding.sent:
            await anyio.lowlevel.checkpoint()

        assert await heard.echoes("beside")
        before = -1
        while before != flooding.sent:
            before = flooding.sent
            await anyio.wait_all_tasks_blocked()
            assert await heard.echoes("still")

        assert 0 < flooding.sent < BOUND
        assert not flooding.overran


async def check_changes(transport, era):
    """Change lists that a peer hears of and never reads, with another served beside it."""
    async with two_peers(transport, era) as (flooding, silent, heard):
        if era == "modern":
            kinds = {"toolsListChanged": True, "promptsListChanged": True}
            await silent.start("subscriptions/listen", {"notifications": kinds})
            while not flooding.server.changes.listens:
                await anyio.lowlevel.checkpoint()

        for number in range(300):
            for _ in range(10):
                flooding.server.add_tool(
                    Tool("late", lambda arguments: "late", input_schema={"type": "object"})
                )
                flooding.server.remove_tool("late")

            if number % 100 == 0:
                assert await heard.echoes("beside")

        changes = flooding.server.changes
        listeners = [*changes._connected, *changes._listens]
        assert listeners
        assert all(len(listener._due) <= 3 for listener in listeners)
        assert await heard.echoes("after")


@pytest.mark.parametrize(
    ("era", "kind"), [("modern", "progress"), ("legacy", "progress"), ("legacy", "log")]
)
@pytest.mark.parametrize("transport", ANY_LOOP)
async def test_a_flood_waits_for_its_reader(transport, era, kind):
    """What a call says is held up, and nobody else is."""
    await check_flood(transport, era, kind)


@ERAS
@pytest.mark.parametrize("transport", ["http", "http_unix", "sse"])
@ON_ASYNCIO
async def test_a_flood_over_uvicorn_waits_for_its_reader(transport, era):
    """Also where it passes uvicorn's buffers."""
    await check_flood(transport, era, "progress")


@ERAS
@pytest.mark.parametrize("transport", ANY_LOOP)
async def test_changes_wait_once_each(transport, era):
    """However often a list changes, one message of it waits for the peer."""
    await check_changes(transport, era)


@pytest.mark.parametrize(
    ("transport", "era"), [("http", "modern"), ("sse", "modern"), ("sse", "legacy")]
)
@ON_ASYNCIO
async def test_changes_over_uvicorn_wait_once_each(transport, era):
    """Also where there is a stream for them alone."""
    await check_changes(transport, era)
