"""What a principal has proved ends by whichever clock says so first, and streams with it."""

from __future__ import annotations

import time

import anyio
import pytest

from stanchion import EVERY_REQUEST, Middleware, Principal, Server, Tool
from stanchion.expiry import LOOK_EVERY, Expiry
from stanchion_testing import connect


@pytest.fixture
def anyio_backend(jumping_time):
    return jumping_time


@pytest.fixture
def wall(monkeypatch):
    """The time of day, to be set."""

    class Wall:
        ahead = 0.0

    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + Wall.ahead)
    return Wall


def proved_for(seconds):
    return Principal("ada", expires_at=time.time() + seconds)


@pytest.mark.parametrize("principal", [None, Principal("ada")])
async def test_what_has_no_end_never_passes(principal):
    """Nor does a wait end before its event."""
    expiry, event = Expiry(principal), anyio.Event()
    with anyio.move_on_after(1e6) as scope:
        await expiry.wait(event)

    assert scope.cancelled_caught
    assert not expiry.has_passed


async def test_a_wait_ends_with_the_proof():
    """When its seconds are over, not at a look in between."""
    expiry, began = Expiry(proved_for(1000)), anyio.current_time()
    await expiry.wait(anyio.Event())
    assert 999 < anyio.current_time() - began < 1001
    assert expiry.has_passed


async def test_a_wait_ends_with_its_event():
    """However long the proof is good."""
    expiry, event = Expiry(proved_for(1000)), anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(expiry.wait, event)
        await anyio.sleep(1)
        event.set()

    assert not expiry.has_passed


async def test_a_clock_that_is_set_back_prolongs_nothing(wall):
    """The wait is measured on one that never steps."""
    expiry, began = Expiry(proved_for(100)), anyio.current_time()
    wall.ahead = -5000
    await expiry.wait(anyio.Event())
    assert anyio.current_time() - began < 101


async def test_a_clock_that_is_set_forward_is_noticed(wall):
    """At the next look."""
    expiry, began = Expiry(proved_for(10_000)), anyio.current_time()
    wall.ahead = 20_000
    assert expiry.has_passed
    wall.ahead = 0

    async def step():
        await anyio.sleep(1)
        wall.ahead = 20_000

    async with anyio.create_task_group() as group:
        group.start_soon(step)
        await expiry.wait(anyio.Event())

    assert anyio.current_time() - began <= LOOK_EVERY + 1


async def test_what_is_past_ends_at_once():
    """Without a wait."""
    expiry = Expiry(proved_for(-1))
    await expiry.wait(anyio.Event())
    assert expiry.has_passed


def tool(name):
    return Tool(name, lambda arguments: "", input_schema={"type": "object"})


async def test_a_listen_ends_with_the_proof():
    """It is answered like one that the server ends."""
    server = Server("s", middleware=[Everywhere()])
    server.add_tool(tool("one"))
    async with connect(server, principal=proved_for(100)) as peer:
        began = anyio.current_time()
        wanted = {"notifications": {"toolsListChanged": True}}
        answer = await peer.request("subscriptions/listen", wanted)

    assert answer["resultType"] == "complete"
    assert 99 < anyio.current_time() - began < 101


async def test_nothing_is_sent_after_the_proof(wall):
    """Also where what is to be sent wakes the listener that did not know yet."""
    server = Server("s")
    server.add_tool(tool("one"))
    async with connect(server, principal=proved_for(1e6)) as peer:
        wanted = {"notifications": {"toolsListChanged": True}}
        id = await peer.start("subscriptions/listen", wanted)
        await peer.until(lambda: peer.notifications)
        server.add_tool(tool("two"))
        wall.ahead = 2e6
        assert "result" in await peer.answer(id)
        told = [each["method"] for each in peer.notifications]

    assert told == ["notifications/subscriptions/acknowledged"]


async def test_a_connection_that_goes_on_is_told_no_more(wall):
    """Of changes, while what its peer has proved is past."""
    server = Server("s")
    server.add_tool(tool("one"))
    async with connect(server, era="legacy", principal=proved_for(1e6)) as peer:
        server.add_tool(tool("two"))
        await peer.until(lambda: peer.notifications)
        wall.ahead = 2e6
        server.add_tool(tool("three"))
        await peer.request("ping")
        await anyio.wait_all_tasks_blocked()
        assert len(peer.notifications) == 1


class Everywhere(Middleware):
    """A layer, so that the answer passes a chain."""

    methods = EVERY_REQUEST
