"""Floods: whatever grows with what a peer sends has a bound that 100,000 keys do not pass (L8)."""

from __future__ import annotations

import gc
import logging
import math
import os

import anyio
import pytest

from stanchion import (
    AskFailed,
    Call,
    Change,
    Connection,
    InvalidParams,
    Pending,
    Response,
    Server,
    Threads,
    Tool,
    Unavailable,
)
from stanchion.catalog import MAX_CACHED_PAGES
from stanchion.changes import MAX_LISTENS, subscribe_to
from stanchion.listener import MAX_URIS, Listener
from stanchion.pages import encode_cursor
from stanchion.pending import MAX_PENDING
from stanchion.sealed import MAX_USED, Seal
from stanchion.wire import Notification, Request
from stanchion_testing import connect, make_call

KEYS = 100_000
MODERN = "2026-07-28"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.fixture
def anyio_backend():
    """What is counted here knows no event loop."""
    return "asyncio", {"use_uvloop": False}


@pytest.fixture
async def server():
    """A server with tools and resources that is started, and whose log is quiet."""
    made = Server("flooded", max_calls=10, page_size=2)
    logging.disable(logging.CRITICAL)
    for name in "abc":
        made.add_tool(Tool(name, hold, input_schema={"type": "object"}))

    made.resource("note://{name}")(read)
    made.on_notification("vendor/told")(listen)
    async with made:
        yield made

    logging.disable(logging.NOTSET)


async def hold(arguments):
    await anyio.sleep_forever()


async def listen(note):
    await anyio.sleep_forever()


def read(name: str) -> str:
    return name


def asks(id, method, **params):
    """Make a modern request."""
    return Request(id, method, {**params, "_meta": ENVELOPE})


async def drop(frame):
    """Be a transport that a peer never reads from, without holding anybody up."""


async def refusals(server, connection, requests):
    """Send requests that are all refused at once; gives how many were."""
    count = 0
    for request in requests:
        reply = await server.dispatch(request, connection, send=drop)
        assert b'"code":503' in reply.body
        count += 1

    return count


async def test_calls_under_many_ids(server):
    """As many run as may; the rest is refused and leaves nothing."""
    connection = Connection("memory")
    async with anyio.create_task_group() as group:
        for id in range(10):
            group.start_soon(server.dispatch, asks(id, "tools/call", name="a"), connection)

        await anyio.wait_all_tasks_blocked()
        more = (asks(f"id{number}", "tools/call", name="a") for number in range(KEYS))
        assert await refusals(server, connection, more) == KEYS
        assert len(connection.in_flight) == len(server.kernel.running) == 10
        group.cancel_scope.cancel()

    assert not connection.in_flight
    assert not server.kernel.running


async def test_listens_under_many_ids(server):
    """They take no call's place, and have a bound of their own."""
    connection = Connection("memory")
    asked = {"notifications": {"toolsListChanged": True}}

    async def listen(id):
        await server.dispatch(asks(id, "subscriptions/listen", **asked), connection, send=drop)

    async with anyio.create_task_group() as group:
        for id in range(MAX_LISTENS):
            group.start_soon(listen, id)

        await anyio.wait_all_tasks_blocked()
        more = (asks(f"id{each}", "subscriptions/listen", **asked) for each in range(KEYS // 10))
        assert await refusals(server, connection, more) == KEYS // 10
        assert len(connection.in_flight) == MAX_LISTENS
        group.cancel_scope.cancel()

    assert not connection.in_flight


async def test_what_is_not_running_is_cancelled(server):
    """Cancellations of ids that there are not are remembered nowhere."""
    connection = Connection("memory")
    for number in range(KEYS):
        params = {"requestId": f"id{number}", "_meta": ENVELOPE}
        await server.dispatch(Notification("notifications/cancelled", params), connection)

    assert not connection.in_flight


async def test_names_and_uris_that_there_are_not(server):
    """Nothing is kept of what was looked for, found by a template or not."""
    entries = {catalog: len(catalog.entries) for catalog in (server.tools, server.resources)}
    for number in range(KEYS):
        assert server.tools.get(f"tool{number}") is None
        assert server.templates.find(f"note://{number}") is not None
        assert server.templates.find(f"other://{number}") is None

    assert {catalog: len(catalog.entries) for catalog in entries} == entries


async def test_cursors_that_somebody_made_up(server):
    """Some pages are kept encoded, and no more, however many cursors name them."""
    call = make_call("tools/list")
    for number in range(KEYS):
        page = server.tools.page(call, encode_cursor("tools", f"z{number}"))
        assert not page.entries

    assert len(server.tools._pages) == MAX_CACHED_PAGES


async def test_subscriptions_to_many_uris(server):
    """A connection hears of so many resources."""
    listener = Listener(server.changes, make_call("initialize"))
    refused = 0
    for number in range(KEYS):
        try:
            subscribe_to(listener, f"note://{number}")
        except Unavailable:
            refused += 1

    assert (len(listener.uris), refused) == (MAX_URIS, KEYS - MAX_URIS)
    with pytest.raises(InvalidParams):
        subscribe_to(listener, "note://" + "x" * KEYS)


async def test_changes_that_a_peer_never_reads(server):
    """One message of each kind waits for it, and one of each resource that it hears of."""
    uris = [f"note://{number}" for number in range(10)]
    listener = Listener(server.changes, make_call("initialize"), uris=uris)
    for number in range(KEYS):
        listener.offer(Change("updated", f"note://{number}"))
        listener.offer(Change("tools", f"tool{number}"))

    assert len(listener._due) == len(uris) + 1


async def test_questions_that_are_never_answered():
    """So many are open at once; answers to what was never asked are dropped."""
    pending = Pending()
    async with anyio.create_task_group() as group:
        for _ in range(MAX_PENDING):
            group.start_soon(pending.ask, drop, "roots/list", {})

        await anyio.wait_all_tasks_blocked()
        for number in range(KEYS):
            pending.take(Response(f"id{number}", {}, None))
            with pytest.raises((Unavailable, AskFailed)):
                await pending.ask(drop, "roots/list", {})

        assert len(pending) == MAX_PENDING
        group.cancel_scope.cancel()

    assert not len(pending)


def test_states_that_were_used_once():
    """Where no more can be remembered nothing opens; what has lapsed makes room."""
    now = [0.0]
    seal = Seal(once=True, clock=lambda: now[0])
    for _ in range(MAX_USED):
        seal._use(os.urandom(24), 900.0)

    for _ in range(1000):
        with pytest.raises(Unavailable):
            seal._use(os.urandom(24), 900.0)

    assert len(seal._used) == MAX_USED
    now[0] = 901.0
    seal._use(b"last", 2000.0)
    assert len(seal._used) == 1


async def test_notifications_that_wait_for_their_handlers(server):
    """So many run, so many wait, and the rest is dropped and counted."""
    connection = Connection("memory")
    for number in range(KEYS):
        params = {"number": number, "_meta": ENVELOPE}
        await server.dispatch(Notification("vendor/told", params), connection)

    counts, handlers = server.notification_counts, server.notifications
    assert (counts.running, counts.waiting) == (handlers.max_running, handlers.max_waiting)
    assert counts.dropped == KEYS - counts.running - counts.waiting


async def test_calls_that_wait_for_a_thread():
    """So many wait; the rest is refused at once."""
    threads = Threads(1, max_waiting=5)
    threads.busy = 1  # as by a call that never ends
    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(threads.run, make_call(), math.sqrt, 4)

        await anyio.wait_all_tasks_blocked()
        for _ in range(KEYS):
            with pytest.raises(Unavailable):
                await threads.run(make_call(), math.sqrt, 4)

        group.cancel_scope.cancel()

    assert not threads._waiting


async def test_completions_of_many_words(server):
    """Nothing is kept of what was typed, nor of references that there are not."""
    server.complete("note://{name}", "name")(lambda value, arguments: [value])
    refs = [{"type": "ref/resource", "uri": "note://{name}"}, {"type": "ref/prompt", "name": "x"}]
    registered = len(server.completers._registered)
    for number in range(KEYS // 100):
        for ref in refs:
            argument = {"name": "name", "value": f"word{number}"}
            request = asks(number, "completion/complete", ref=ref, argument=argument)
            await server.dispatch(request, Connection("memory"))

    assert len(server.completers._registered) == registered


async def test_connections_that_come_and_go(server):
    """Of a legacy peer that has gone nothing is kept, whatever it said."""
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}
    for number in range(KEYS // 10):
        connection = Connection("memory")
        connection.listeners = set()
        initialize = Request(number, "initialize", {**params, "clientInfo": {"name": f"{number}"}})
        await server.dispatch(initialize, connection)
        server.changes.disconnect(connection)

    assert server.changes.connections == 0


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_requests_leave_nothing_behind(era):
    """Neither answers nor failures, lists and reads (L7)."""
    server = Server("s")

    @server.tool
    async def report(call: Call, fail: bool) -> str:
        await call.progress(1)
        if fail:
            raise RuntimeError("lost")

        return "done"

    server.resource("note://{name}")(read)
    logging.disable(logging.CRITICAL)
    async with connect(server, era=era) as peer:

        async def use(number):
            await peer.call_tool("report", {"fail": False})
            assert (await peer.call_tool("report", {"fail": True})).is_error
            await peer.request("tools/list")
            await peer.request("resources/read", {"uri": f"note://{number}"})

        counts = []
        for round in range(3):
            for number in range(100):
                await use(f"{round}-{number}")

            gc.collect()
            counts.append(len(gc.get_objects()))

    logging.disable(logging.NOTSET)
    assert counts[2] - counts[1] < 50  # of 400 requests
