"""A listener: what it notes, what it merges, and how much waits for a peer that does not read."""

from __future__ import annotations

import anyio
import orjson
import pytest

from stanchion import Change, Server
from stanchion.listener import Listener
from stanchion_testing import make_call


@pytest.fixture
def server():
    made = Server("s")
    made.resource("file://{+path}")(lambda path: path)
    return made


class Slow:
    """A peer that reads when it is let to."""

    def __init__(self):
        self.read = []
        self.may_read = anyio.Event()

    async def send(self, frame):
        await self.may_read.wait()
        message = orjson.loads(frame)
        self.read.append((message["method"], message.get("params")))


@pytest.fixture
async def slow():
    return Slow()


async def test_a_peer_that_does_not_read_is_owed_one_message_of_each(server, slow):
    """However often a list or a resource changes; they come in the order of the first change."""
    uris = [f"file://{number}" for number in range(3)]
    listener = Listener(server.changes, make_call(), ["tools", "prompts"], uris)
    async with anyio.create_task_group() as group:
        group.start_soon(listener.run, slow.send)
        listener.offer(Change("tools", "first"))
        await anyio.wait_all_tasks_blocked()
        for number in range(10_000):
            listener.offer(Change("updated", f"file://{number}"))
            listener.offer(Change("tools", f"tool{number}"))
            listener.offer(Change("prompts", f"prompt{number}"))
            listener.offer(Change("resources", f"file://{number}"))

        slow.may_read.set()
        listener.close()

    tools = ("notifications/tools/list_changed", None)
    prompts = ("notifications/prompts/list_changed", None)
    updates = [("notifications/resources/updated", {"uri": uri}) for uri in uris]
    assert slow.read == [tools, updates[0], tools, prompts, *updates[1:]]


async def test_what_changes_after_it_was_sent_is_sent_again(server, slow):
    """Each time the peer has read all."""
    slow.may_read.set()
    listener = Listener(server.changes, make_call(), meta={"tag": 1})
    async with anyio.create_task_group() as group:
        group.start_soon(listener.run, slow.send)
        for _ in range(2):
            listener.offer(Change("tools", "echo"))
            await anyio.wait_all_tasks_blocked()

        listener.close()

    sent = ("notifications/tools/list_changed", {"_meta": {"tag": 1}})
    assert slow.read == [sent, sent]


async def test_it_ends_when_it_is_closed(server, slow):
    """Also where nothing has ever changed."""
    listener = Listener(server.changes, make_call())
    listener.close()
    await listener.run(slow.send)
    assert slow.read == []
