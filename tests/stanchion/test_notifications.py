"""Notification handlers: who is told what, how many run at once, and what ends them."""

from __future__ import annotations

import logging

import anyio
import anyio.lowlevel
import pytest

from stanchion import (
    LEGACY_VERSIONS,
    ChainFrozen,
    ClientNotification,
    ConfigurationError,
    Principal,
    Server,
)
from stanchion.notifications import MAX_HANDLERS, MAX_NAMES, NotificationCounts
from stanchion_testing import connect

ROOTS = "notifications/roots/list_changed"
MODERN_META = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "teller"},
    }
}


@pytest.fixture
def anyio_backend(jumping_time):
    """Timeouts pass as soon as nothing else can run."""
    return jumping_time


async def settled():
    """Let everything run that can."""
    await anyio.wait_all_tasks_blocked()


async def test_a_handler_is_told_who_sent_what():
    """The notification has its name, its params, its peer and its principal."""
    server, told = Server("s"), []

    @server.on_notification("vendor/told")
    async def listen(note):
        told.append(note)

    ada = Principal("ada")
    async with connect(server, era="legacy", principal=ada) as peer:
        await peer.notify("vendor/told", {"what": [1]})
        await peer.notify("vendor/other", {"what": [2]})
        await peer.request("ping")
        await settled()

    (note,) = told
    assert (note.method, note.params, note.principal) == ("vendor/told", {"what": [1]}, ada)
    assert note.peer.client["name"] == "stanchion-testing"
    assert server.notification_counts == NotificationCounts(1, 0, 0, 0, 0, 0)


@pytest.mark.parametrize("version", LEGACY_VERSIONS)
async def test_the_protocols_own_notifications_are_handled_where_they_exist(version):
    """`roots/list_changed` is told by every legacy version, `initialized` before all else."""
    server, told = Server("s"), []
    for name in (ROOTS, "notifications/initialized"):

        @server.on_notification(name)
        async def listen(note):
            told.append(note.method)

    async with connect(server, version=version) as peer:
        await peer.notify(ROOTS)
        await settled()

    assert sorted(told) == ["notifications/initialized", ROOTS]


async def test_a_modern_peer_tells_custom_ones_and_none_that_its_version_dropped():
    """Who it is stands in `_meta`, as far as it says so."""
    server, told = Server("s"), []
    for name in (ROOTS, "vendor/told"):

        @server.on_notification(name)
        async def listen(note):
            told.append(note)

    async with connect(server) as peer:
        await peer.notify(ROOTS, MODERN_META)
        await peer.notify("vendor/told", MODERN_META)
        await settled()

    (note,) = told
    assert (note.peer.version, note.peer.client) == ("2026-07-28", {"name": "teller"})
    assert note.peer.capabilities == {}


@pytest.mark.parametrize("meta", ["x", {"io.modelcontextprotocol/clientInfo": 3}])
async def test_a_malformed_envelope_is_no_ones_description(meta):
    """A notification is not answered, and what its sender claims is taken only as an object."""
    server, told = Server("s"), []

    @server.on_notification("vendor/told")
    async def listen(note):
        told.append(note.peer.client)

    async with connect(server, era="legacy") as peer:
        await peer.notify("vendor/told", {"_meta": meta})
        await settled()

    async with connect(server) as peer:
        meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"} | (
            meta if isinstance(meta, dict) else {}
        )
        await peer.notify("vendor/told", {"_meta": meta})
        await settled()

    assert [client.get("name") for client in told] == ["stanchion-testing", None]


async def test_without_a_handshake_it_is_a_modern_peers():
    """Its notifications need not say so; what only legacy peers tell is then nobody's."""
    server, told = Server("s"), []
    for name in (ROOTS, "vendor/told"):

        @server.on_notification(name)
        async def listen(note):
            told.append((note.method, note.peer.version, note.peer.client))

    async with connect(server) as peer:
        await peer.notify(ROOTS)
        await peer.notify("vendor/told")
        await settled()

    assert told == [("vendor/told", "2026-07-28", {})]


async def test_a_cancellation_is_done_and_told():
    """A handler beside the server's own work changes nothing of it."""
    server, told = Server("s"), []

    @server.tool
    async def hold() -> str:
        await anyio.sleep_forever()

    @server.on_notification("notifications/cancelled")
    async def listen(note):
        told.append(note.params["requestId"])

    async with connect(server) as peer:
        id = await peer.start("tools/call", {"name": "hold"})
        await settled()
        await peer.cancel(id)
        await settled()
        assert not server.kernel.running

    assert told == [id]


async def test_a_malformed_notification_of_the_protocol_is_not_told():
    """The gate's table speaks before the handlers."""
    server, told = Server("s"), []

    @server.on_notification("notifications/progress")
    async def listen(note):
        told.append(note.params["progress"])

    async with connect(server, era="legacy") as peer:
        await peer.notify("notifications/progress", {"progressToken": 1, "progress": "much"})
        await peer.notify("notifications/progress", {"progressToken": 1, "progress": 5})
        await settled()

    assert told == [5]


async def test_what_a_handler_raises_is_logged_and_hurts_nobody(caplog):
    """Neither the other handlers, nor the peer, nor the server; not even `SystemExit`."""
    server, told = Server("s"), []

    @server.on_notification("vendor/told")
    async def fail(note):
        raise RuntimeError("broken")

    @server.on_notification("vendor/told")
    async def leave(note):
        raise SystemExit(3)

    @server.on_notification("vendor/told")
    async def listen(note):
        told.append(note.method)

    with caplog.at_level(logging.ERROR, "stanchion.notifications"):
        async with connect(server, era="legacy") as peer:
            await peer.notify("vendor/told")
            await settled()
            assert await peer.request("ping") == {}

    assert told == ["vendor/told"]
    assert server.notification_counts == NotificationCounts(1, 2, 0, 0, 0, 0)
    assert {record.exc_info[0] for record in caplog.records} == {RuntimeError, SystemExit}


async def test_a_run_that_takes_too_long_is_stopped(caplog):
    """A handler that hangs does not hold its place for ever."""
    server = Server("s")

    @server.on_notification("vendor/told", timeout=5)
    async def hang(note):
        await anyio.sleep_forever()

    async with connect(server, era="legacy") as peer:
        await peer.notify("vendor/told")
        await settled()
        assert server.notification_counts.running == 1
        await anyio.sleep(6)
        assert server.notification_counts == NotificationCounts(0, 1, 0, 0, 0, 0)

    assert "took over 5 s" in caplog.text


async def test_a_flood_is_bounded_dropped_and_counted():
    """So many run, so many wait, the rest is gone; those that wait run once there is room."""
    server, go_on, told, at_once = Server("s"), anyio.Event(), [], []
    server.notifications.max_running, server.notifications.max_waiting = 2, 3

    @server.on_notification("vendor/told")
    async def listen(note):
        at_once.append(server.notification_counts.running)
        await go_on.wait()
        told.append(note.params["number"])

    async with connect(server, era="legacy") as peer:
        for number in range(1000):
            await peer.notify("vendor/told", {"number": number})

        assert await peer.request("ping") == {}
        await settled()
        assert server.notification_counts == NotificationCounts(0, 0, 995, 0, 2, 3)
        go_on.set()
        await settled()

    assert sorted(told) == [0, 1, 2, 3, 4]
    assert max(at_once) == 2
    assert server.notification_counts == NotificationCounts(5, 0, 995, 0, 0, 0)


async def test_stopping_cancels_what_runs_and_drops_what_waits():
    """A handler's own clean-up runs before the server is closed."""
    server, ended = Server("s"), []
    server.notifications.max_running = 1

    @server.on_notification("vendor/told")
    async def hang(note):
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(note.params["number"])

    async with connect(server, era="legacy") as peer:
        for number in range(3):
            await peer.notify("vendor/told", {"number": number})

        await settled()

    assert ended == [0]
    assert server.notification_counts == NotificationCounts(0, 0, 2, 1, 0, 0)


async def test_a_server_that_was_stopped_starts_again():
    """Each life has a background of its own; the counts go on."""
    server = Server("s")

    @server.on_notification("vendor/told")
    async def listen(note):
        await anyio.lowlevel.checkpoint()

    for life in (1, 2):
        async with connect(server, era="legacy") as peer:
            await peer.notify("vendor/told")
            await settled()

        assert server.notification_counts.finished == life


async def test_after_the_end_runs_are_dropped():
    """A notification that comes while the server stops starts nothing."""
    server = Server("s")

    @server.on_notification("vendor/told")
    async def listen(note):
        raise AssertionError("it must not run")

    server.notifications.deliver(ClientNotification("vendor/told", {}, None, None))
    assert server.notification_counts == NotificationCounts(0, 0, 1, 0, 0, 0)


async def handler(note):
    """A handler that is fine."""


def test_names_and_handlers_are_bounded():
    """More than anybody writes by hand is a mistake that shows at once."""
    server = Server("s")
    for _ in range(MAX_HANDLERS):
        server.on_notification("vendor/told")(handler)

    with pytest.raises(ConfigurationError, match=f"has {MAX_HANDLERS} handlers already"):
        server.on_notification("vendor/told")(handler)

    for number in range(1, MAX_NAMES):
        server.on_notification(f"vendor/{number}")(handler)

    assert len(server.notifications) == MAX_NAMES
    with pytest.raises(ConfigurationError, match=f"{MAX_NAMES} notifications"):
        server.on_notification("vendor/last")(handler)


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan")])
def test_a_timeout_is_a_number_of_seconds(timeout):
    """No run is without an end."""
    with pytest.raises(ConfigurationError, match="more than 0 seconds"):
        Server("s").on_notification("vendor/told", timeout=timeout)(handler)


@pytest.mark.parametrize("wrong", [lambda note: None, print, 3])
def test_a_handler_is_async(wrong):
    """A sync one would hold up every peer."""
    with pytest.raises(ConfigurationError, match="async def handler"):
        Server("s").on_notification("vendor/told")(wrong)


def test_what_no_client_sends_has_no_handler():
    """The name is checked as the handler is registered."""
    with pytest.raises(ConfigurationError, match="no client sends it"):
        Server("s").on_notification("notifications/message")(handler)


async def test_handlers_are_fixed_at_the_start():
    """As the chain is."""
    server = Server("s")
    async with server:
        with pytest.raises(ChainFrozen, match="on_notification"):
            server.on_notification("vendor/told")(handler)


@pytest.mark.parametrize(("running", "waiting"), [(0, 1), (1, -1)])
async def test_bounds_out_of_range_do_not_start(running, waiting):
    """A server that could run no handler says so."""
    server = Server("s")
    server.notifications.max_running, server.notifications.max_waiting = running, waiting
    with pytest.raises(ConfigurationError, match="max_running"):
        async with server:
            raise AssertionError("it must not start")
