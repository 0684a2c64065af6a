"""What a server sends is held against the official models of its version."""

from __future__ import annotations

import anyio
import pytest

from stanchion import (
    LEGACY_VERSIONS,
    MODERN_VERSIONS,
    Middleware,
    PlainResult,
    Server,
)
from stanchion_testing import Judge, PeerError, Unofficial, connect


class Spoilt(Middleware):
    """Answers every tool call with what no client can read."""

    async def __call__(self, next):
        return PlainResult({"content": [{"type": 1}]})


@pytest.fixture
def spoilt():
    """A server whose tool is answered for."""
    server = Server("test", middleware=[Spoilt()])
    server.tool(name="t")(lambda: None)
    return server


@pytest.mark.parametrize("version", [*LEGACY_VERSIONS, *MODERN_VERSIONS])
async def test_a_result_that_is_none_fails_the_test(spoilt, version):
    """Where the test waits, with the message in the error; and from then on."""
    async with connect(spoilt, version=version) as peer:
        for _ in range(2):
            with pytest.raises(Unofficial, match="content") as caught:
                await peer.call_tool("t")

        assert caught.value.wire["result"]["content"] == [{"type": 1}]


async def test_it_can_be_left_out(spoilt):
    """A test of a broken server sees what it sends."""
    async with connect(spoilt, validate=False) as peer:
        assert (await peer.call_tool("t")).content == [{"type": 1}]


async def start_a_call(server, failure=None):
    """Call and never wait for the answer."""
    async with connect(server) as peer:
        await peer.start("tools/call", {"name": "t"})
        await anyio.wait_all_tasks_blocked()
        if failure is not None:
            raise failure


async def test_what_nobody_waits_for_fails_the_test_at_its_end(spoilt):
    """An answer that the test never takes is judged as well."""
    with pytest.raises(Unofficial):
        await start_a_call(spoilt)


async def test_the_error_of_the_body_comes_first(spoilt):
    """A test that fails for another reason says that one."""
    with pytest.raises(KeyError):
        await start_a_call(spoilt, KeyError())


async def test_what_the_protocol_does_not_know_passes():
    """A method of the server's own is answered as the server likes, and so is a refusal."""
    server = Server("test")

    @server.method("acme/free")
    async def free() -> dict[str, int]:
        return {"anything": 1}

    async with connect(server) as peer:
        assert (await peer.request("acme/free"))["anything"] == 1
        with pytest.raises(PeerError):
            await peer.request("no/such")


NOTIFICATION = {"jsonrpc": "2.0", "method": "notifications/progress"}


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("2026-07-28", {**NOTIFICATION, "params": {"progress": 1}}),
        ("2026-07-28", {"jsonrpc": "2.0", "id": "q", "method": "roots/list"}),
        ("2025-03-26", {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create"}),
        ("2025-11-25", {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create"}),
        ("2025-11-25", {**NOTIFICATION, "method": "notifications/subscriptions/acknowledged"}),
        ("2025-11-25", {"id": 1, "result": {}}),
        ("2025-11-25", {"jsonrpc": "2.0", "id": 1, "error": {"code": "x", "message": "m"}}),
        ("2025-11-25", {"jsonrpc": "2.0", "id": 1, "result": {}}),
        ("2025-11-25", {"jsonrpc": "2.0", "id": 2, "result": {}}),
    ],
)
def test_what_is_not_allowed(version, message):
    """A message without what it needs, and a method that its version does not have."""
    judge = Judge(version)
    judge.sent({"jsonrpc": "2.0", "id": 1, "method": "initialize"})
    judge.sent([7, {"jsonrpc": "2.0", "id": 2, "method": "server/discover"}])
    with pytest.raises(Unofficial):
        judge.received(message)


@pytest.mark.parametrize(
    "message",
    [
        {**NOTIFICATION, "params": {"progress": 1, "progressToken": 7}},
        {"jsonrpc": "2.0", "method": "acme/told", "params": {"x": 1}},
        {"jsonrpc": "2.0", "id": 1, "method": "acme/asked"},
        {"jsonrpc": "2.0", "id": "q", "method": "roots/list"},
        {"jsonrpc": "2.0", "id": 1, "result": {"x": 1}},
        {"jsonrpc": "2.0", "id": 2, "result": {"x": 1}},
        {"jsonrpc": "2.0", "id": 3, "result": {"x": 1}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "m"}},
    ],
)
def test_what_passes(message):
    """What is right, what is not the protocol's, and answers to what nobody can know."""
    judge = Judge("2025-11-25")
    judge.sent({"jsonrpc": "2.0", "id": 1, "method": "acme/free"})
    meta = {"io.modelcontextprotocol/protocolVersion": "1999-01-01"}
    judge.sent({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": meta}})
    judge.received(message)


def test_a_request_may_name_its_version():
    """It is judged by that one."""
    judge = Judge("2025-11-25")
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    for id, params in ((1, {}), (2, {"_meta": meta})):
        judge.sent({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": params})

    judge.received({"jsonrpc": "2.0", "id": 1, "result": {"tools": []}})
    with pytest.raises(Unofficial):
        judge.received({"jsonrpc": "2.0", "id": 2, "result": {"tools": []}})
