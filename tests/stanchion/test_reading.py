"""What a server and its layers measure is told to whoever publishes metrics."""

from __future__ import annotations

import anyio
import pytest

from stanchion import ConfigurationError, Middleware, Reading, Server, readings_of


class Counts(Middleware):
    """Counts something."""

    name = "counts"

    def __init__(self, value=0):
        self.value = value
        self.server = None

    def joined(self, server):
        self.server = server

    def readings(self):
        return [Reading("counts.things", self.value, "{thing}", "Things.", rises=True)]


class Broken(Middleware):
    """Cannot tell."""

    name = "broken"

    def readings(self):
        raise OSError("gone")


def values(server):
    return {
        (each.name, each.attributes.get("stanchion.server")): each.value
        for each in readings_of(server)
    }


async def test_a_server_tells_what_runs(judged):
    """Calls, listens and threads are counted while they are there."""
    server = Server("desk")

    @server.tool
    async def waits() -> str:
        await anyio.sleep_forever()
        return ""

    async with server:
        peer = await judged(server)
        async with anyio.create_task_group() as group:
            group.start_soon(peer.ask, "tools/call", {"name": "waits"})
            group.start_soon(peer.ask, "subscriptions/listen", {"notifications": {}})
            await anyio.wait_all_tasks_blocked()
            assert values(server) == {
                ("stanchion.calls.running", "desk"): 1,
                ("stanchion.listens.open", "desk"): 1,
                ("stanchion.threads.busy", "desk"): 0,
                ("stanchion.threads.abandoned", "desk"): 0,
            }
            group.cancel_scope.cancel()

        assert values(server)["stanchion.calls.running", "desk"] == 0


async def test_layers_tell_too_also_those_of_mounted_servers(caplog):
    """One that fails is logged and left out."""
    outer, inner = Counts(1), Counts(2)
    server, other = Server("hall", middleware=[Broken(), outer]), Server("desk", middleware=[inner])
    server.mount(other, "desk/")
    async with server:
        told = [each for each in readings_of(server) if each.name == "counts.things"]

    assert [each.value for each in told] == [1, 2]
    assert [each.attributes["stanchion.server"] for each in told] == ["hall", "desk"]
    assert [each.getMessage() for each in caplog.records if each.name == "stanchion.reading"] == [
        "broken failed to tell what it measures"
    ]
    assert (outer.server, inner.server) == (server, other)


async def test_a_layer_may_not_fit_the_server():
    """What it raises when it joins keeps the server from starting."""

    class Picky(Middleware):
        name = "picky"

        def joined(self, server):
            raise ConfigurationError(f"not {server.name}")

    with pytest.raises(ConfigurationError, match="not desk"):
        async with Server("desk", middleware=[Picky()]):
            pytest.fail("started")
