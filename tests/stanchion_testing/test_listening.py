"""A peer listens to changes the same way in both eras."""

from __future__ import annotations

import anyio
import pytest

from stanchion import Server, Tool
from stanchion_testing import PeerError, connect

eras = pytest.mark.parametrize("era", ["modern", "legacy"])


@pytest.fixture
def server():
    """A server with two resources."""
    server = Server("test")
    for name in ("one", "two"):
        server.resource(f"note://{name}")(lambda: "note")

    server.prompt(name="greet")(lambda: "hello")
    server.add_tool(other("first"))
    return server


def other(name="other"):
    return Tool(name, lambda arguments: "done", input_schema={"type": "object"})


@eras
async def test_what_was_asked_for_comes(server, era):
    """And nothing else, whatever the server tells this peer for other reasons."""
    async with (
        connect(server, era=era) as peer,
        peer.listen("note://two", prompts=True),
        peer.listen("note://one", tools=True) as changes,
    ):
        assert (changes.honoured is None) == (era == "legacy")
        server.notify_resource_updated("note://two")
        server.remove_prompt("greet")
        server.notify_resource_updated("note://one")
        assert (await changes.next())["params"]["uri"] == "note://one"
        server.add_tool(other())
        assert (await changes.next())["method"] == "notifications/tools/list_changed"
        await anyio.wait_all_tasks_blocked()
        assert changes.came == []


@eras
async def test_after_its_end_nothing_comes(server, era):
    """The server is told so."""
    async with connect(server, era=era) as peer:
        async with peer.listen("note://one") as changes:
            pass

        await anyio.wait_all_tasks_blocked()
        peer.notifications.clear()
        server.notify_resource_updated("note://one")
        await anyio.wait_all_tasks_blocked()
        assert changes.came == peer.notifications == []


async def test_what_is_honoured(server):
    """A modern server says what it will tell."""
    async with connect(server) as peer, peer.listen("note://one", "note://no") as changes:
        assert changes.honoured == {"resourceSubscriptions": ["note://one"]}


async def test_a_server_that_will_not_tell(server):
    """It refuses in its era's way."""
    async with connect(server, era="legacy") as peer:
        with pytest.raises(PeerError):
            async with peer.listen("note://no"):
                pass

    async with connect(server) as peer:
        with pytest.raises(PeerError):
            async with peer.listen(*(f"note://{number}" for number in range(1001))):
                pass


async def test_a_server_that_drains_ends_the_listen(server):
    """What came before is given first."""
    async with connect(server) as peer, peer.listen(tools=True) as changes:
        server.add_tool(other())
        await anyio.wait_all_tasks_blocked()
        await server.drain(0)
        assert (await changes.next())["method"] == "notifications/tools/list_changed"
        with pytest.raises(ConnectionError, match="ended"):
            await changes.next()


async def test_a_peer_that_closes_within_a_listen(server):
    """There is nobody to tell any more."""
    async with connect(server) as peer, peer.listen(tools=True) as changes:
        await peer.close()
        with pytest.raises(ConnectionError):
            await changes.next()
