"""Frames between a server and a peer in the same process."""

from __future__ import annotations

import anyio
import orjson
import pytest

from stanchion import Call, Principal, Server
from stanchion_transports.memory import open_memory

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def frame(id, name):
    params = {"name": name, "_meta": META}
    message = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
    return orjson.dumps(message)


@pytest.fixture
def server():
    server = Server("test")

    @server.tool
    async def who(call: Call) -> str:
        name = "nobody" if call.principal is None else call.principal.subject
        return f"{name} over {call.peer.transport}"

    @server.tool
    async def hang():
        await anyio.sleep_forever()

    return server


async def ask(stream, id, name):
    await stream.send(frame(id, name))
    answer = orjson.loads(await stream.receive())
    assert answer["id"] == id
    return answer["result"]["content"][0]["text"]


async def test_bytes_both_ways(server):
    """Frames pass as bytes; the server is started and stopped with the stream."""
    assert server.draining
    async with open_memory(server) as stream:
        assert await ask(stream, 1, "who") == "nobody over memory"
        assert not server.draining

    assert server.draining


async def test_principal(server):
    """The peer is who the test says it is."""
    async with open_memory(server, principal=Principal("alice")) as stream:
        assert await ask(stream, 1, "who") == "alice over memory"


async def test_concurrent_requests(server):
    """A request that hangs holds up no other."""
    async with open_memory(server) as stream:
        await stream.send(frame(1, "hang"))
        assert await ask(stream, 2, "who") == "nobody over memory"


async def test_running_server(server):
    """A server that runs already is used as it runs, and runs on afterwards."""
    async with server:
        async with open_memory(server) as one, open_memory(server) as two:
            assert await ask(one, 1, "who") == await ask(two, 1, "who")

        assert not server.draining


async def test_leaving_ends_what_runs(server):
    """A call that still runs when the peer leaves is cancelled, and nothing hangs."""
    ended = []

    @server.tool
    async def watched():
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(True)

    async with open_memory(server) as stream:
        await stream.send(frame(1, "watched"))
        await anyio.wait_all_tasks_blocked()

    assert ended == [True]


async def test_slow_reader(server):
    """With a bounded buffer the server waits for a peer that does not read, and loses nothing."""
    async with open_memory(server, max_buffered=1) as stream:
        async with anyio.create_task_group() as group:

            async def send():
                for id in range(20):
                    await stream.send(frame(id, "who"))

            group.start_soon(send)
            await anyio.wait_all_tasks_blocked()
            ids = [orjson.loads(await stream.receive())["id"] for _ in range(20)]

        assert sorted(ids) == list(range(20))


async def test_garbage(server):
    """A frame that is no message is answered, and the stream lives on."""
    async with open_memory(server) as stream:
        await stream.send(b"\xff")
        assert orjson.loads(await stream.receive())["error"]["code"] == -32700
        assert await ask(stream, 1, "who") == "nobody over memory"


async def test_a_peer_that_goes_while_it_is_answered(server):
    """An answer that nobody will read is dropped, and the server goes on."""
    async with server:
        async with open_memory(server, max_buffered=0) as stream:
            await stream.send(frame(1, "who"))
            await anyio.wait_all_tasks_blocked()  # the answer waits to be read
            await stream.aclose()
            await anyio.wait_all_tasks_blocked()

        async with open_memory(server) as stream:
            assert await ask(stream, 2, "who") == "nobody over memory"
