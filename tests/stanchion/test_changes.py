"""From the catalogs over the bus to those who listen: where changes come from."""

from __future__ import annotations

import threading
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread

from stanchion import Bus, Change, MemoryBus, Middleware, Server, Tool
from stanchion_testing import connect

EVERYTHING = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
}


def offering(**options):
    """A server with a tool and a resource."""
    server = Server("s", **options)
    server.add_tool(other("first"))
    server.resource("note://one")(lambda: "one")
    return server


def other(name="other", tags=()):
    return Tool(name, lambda arguments: "done", input_schema={"type": "object"}, tags=tags)


class HideSecrets(Middleware):
    """Hides what is tagged so."""

    def visible(self, target, call):
        return "secret" not in target.tags


async def told(peer):
    """Give the notifications that came, and forget them."""
    await anyio.wait_all_tasks_blocked()
    came = [each["method"].removeprefix("notifications/") for each in peer.notifications]
    peer.notifications.clear()
    return came


@asynccontextmanager
async def both_eras(server):
    async with server, connect(server) as modern, connect(server, era="legacy") as legacy:
        await modern.start("subscriptions/listen", {"notifications": EVERYTHING})
        assert await told(modern) == ["subscriptions/acknowledged"]
        yield modern, legacy


async def test_a_mounted_server_changes_ours():
    """Under the prefix it is a tool of ours that comes and goes."""
    inner, server = offering(), offering()
    server.mount(inner, "inner/")
    async with both_eras(server) as peers:
        for change in (
            lambda: inner.add_tool(other()),
            lambda: inner.remove_tool("other"),
        ):
            change()
            for peer in peers:
                assert await told(peer) == ["tools/list_changed"]


async def test_what_a_mounted_server_hides_is_not_told():
    """Its chain decides, as it does in lists."""
    inner, server = offering(middleware=[HideSecrets()]), offering()
    server.mount(inner, "inner/")
    async with both_eras(server) as peers:
        inner.add_tool(other(tags={"secret"}))
        for peer in peers:
            assert await told(peer) == []


async def test_a_thread_may_change_what_is_offered():
    """A sync tool runs in one."""
    server = offering()

    @server.tool
    def grow() -> str:
        server.add_tool(other())
        return "grown"

    async with both_eras(server) as peers:
        await peers[0].call_tool("grow")
        for peer in peers:
            assert await told(peer) == ["tools/list_changed"]


async def test_the_bus_may_be_another():
    """Replicas on one bus hear of each other's changes."""
    bus = MemoryBus()
    here, there = offering(bus=bus), offering(bus=bus)
    async with there, both_eras(here) as peers:
        there.notify_resource_updated("note://one")
        there.add_tool(other())
        for peer in peers:
            assert await told(peer) == ["tools/list_changed"]


async def test_a_server_that_does_not_serve_publishes_nothing():
    """Before the start and after the end there is nobody to tell."""
    bus, heard = MemoryBus(), []
    bus.subscribe(heard.append)
    server = offering(bus=bus)
    async with server:
        pass

    server.add_tool(other())
    server.notify_resource_updated("note://one")
    assert heard == []


async def test_it_can_start_again():
    """Listeners of its second life are told as those of the first."""
    server = offering()
    for name in ("second", "third"):
        async with both_eras(server) as peers:
            server.add_tool(other(name))
            for peer in peers:
                assert await told(peer) == ["tools/list_changed"]


class Distant(Bus):
    """A bus that calls back from a thread of its own, without what only this process has."""

    def publish(self, change):
        bare = Change(change.topic, change.key)
        thread = threading.Thread(target=self.callback, args=(bare,))
        thread.start()
        thread.join()

    def subscribe(self, callback):
        self.callback = callback
        return lambda: None


async def test_a_bus_may_call_from_another_thread():
    """And lead out of the process: what stood under a name is then not known, and told to all."""
    server = offering(bus=Distant(), middleware=[HideSecrets()])
    async with both_eras(server) as peers:
        server.add_tool(other(tags={"secret"}))
        server.notify_resource_updated("note://one")
        for peer in peers:
            assert await told(peer) == ["tools/list_changed"]


async def test_a_thread_of_any_kind_may_change_what_is_offered():
    """The event loop is told, whoever made the thread."""
    server = offering()
    async with both_eras(server) as peers:
        await anyio.to_thread.run_sync(server.remove_tool, "first")
        for peer in peers:
            assert await told(peer) == ["tools/list_changed"]
