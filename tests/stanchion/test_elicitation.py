"""Pages that a user is asked to open: their ids, their end, and the error that asks for them."""

from __future__ import annotations

import anyio
import pytest
from mcp_types import ElicitationRequiredErrorData, InputRequiredResult

from stanchion import (
    Call,
    ConfigurationError,
    ElicitUrl,
    MemoryBus,
    Server,
    UrlElicitationRequired,
)
from stanchion.session import MAX_PAGES
from stanchion_testing import PeerError, connect

CAPABILITIES = {"elicitation": {"form": {}, "url": {}}}
COMPLETE = "notifications/elicitation/complete"
URL = "https://example.com/login?token=t1"


def make_server(**options):
    """A server with tools whose user must open a page."""
    server = Server("asking", **options)
    server.done = set()

    @server.tool
    async def visit(call: Call, id: str = "t1") -> str:
        return (await call.elicit_url("Log in", URL, id=id)).action

    @server.tool
    async def first(call: Call) -> str:
        if "t1" not in server.done:
            raise UrlElicitationRequired(ElicitUrl("Log in", URL, id="t1"))

        return "welcome"

    @server.tool
    async def in_group(call: Call) -> str:
        async with anyio.create_task_group() as group:
            group.start_soon(first, call)

    @server.tool
    async def tells(call: Call) -> str:
        said = await call.elicit_url("Log in", URL, id="t1")
        await call.notify_elicitation_complete("t1")
        return said.action

    return server


async def visited(peer, id="t1"):
    """Call the tool and agree to open its page."""
    call = await peer.start("tools/call", {"name": "visit", "arguments": {"id": id}})
    await anyio.wait_all_tasks_blocked()
    [question] = [each for each in peer.notifications if "id" in each]
    peer.notifications.clear()
    await peer.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}})
    assert (await peer.answer(call))["result"]["content"][0]["text"] == "accept"
    return question["params"]


async def told(peer):
    """Give the ids whose end the peer was told since it was last asked."""
    await anyio.wait_all_tasks_blocked()
    ids = [
        each["params"]["elicitationId"] for each in peer.notifications if each["method"] == COMPLETE
    ]
    peer.notifications.clear()
    return ids


# Ids.


def test_an_id_is_random_unless_it_is_given():
    """Two pages are never one, though they are the same question."""
    one, other = ElicitUrl("Log in", URL), ElicitUrl("Log in", URL)
    assert one.digest == other.digest
    assert one.id != other.id
    assert ElicitUrl("Log in", URL, id="mine").params_for("2025-11-25")["elicitationId"] == "mine"


@pytest.mark.parametrize("id", ["", "x" * 257])
def test_an_id_has_a_bound(id):
    """It is kept while the page's end may still be told."""
    with pytest.raises(ConfigurationError, match="256"):
        ElicitUrl("Log in", URL, id=id)


async def test_a_modern_client_gets_no_id():
    """Its version has none."""
    async with connect(make_server(), capabilities=CAPABILITIES) as peer:
        result = await peer.request("tools/call", {"name": "visit"})
        InputRequiredResult.model_validate(result)
        params = result["inputRequests"]["ask1"]["params"]
        assert params == {"mode": "url", "message": "Log in", "url": URL}


# The end.


async def test_the_client_of_a_page_is_told_its_end_once():
    """And no other client, though it has a page of its own."""
    server = make_server()
    async with (
        connect(server, era="legacy", capabilities=CAPABILITIES) as peer,
        connect(server, era="legacy", capabilities=CAPABILITIES) as other,
    ):
        assert (await visited(peer))["elicitationId"] == "t1"
        await visited(other, "t2")
        server.notify_elicitation_complete("t1")
        server.notify_elicitation_complete("t1")
        server.notify_elicitation_complete("unknown")
        assert await told(peer) == ["t1"]
        assert await told(other) == []


async def test_a_thread_may_tell():
    """Such as one that serves the page."""
    server = make_server()
    async with connect(server, era="legacy", capabilities=CAPABILITIES) as peer:
        await visited(peer)
        await anyio.to_thread.run_sync(server.notify_elicitation_complete, "t1")
        while not peer.notifications:
            await anyio.lowlevel.checkpoint()

        assert await told(peer) == ["t1"]


async def test_the_page_may_be_served_by_a_replica():
    """One that shares the bus."""
    bus = MemoryBus()
    server, replica = make_server(bus=bus), make_server(bus=bus)
    async with replica, connect(server, era="legacy", capabilities=CAPABILITIES) as peer:
        await visited(peer)
        replica.notify_elicitation_complete("t1")
        assert await told(peer) == ["t1"]


async def test_a_page_that_was_not_given_is_not_told():
    """Nor is anything to a modern peer, whose version has no such message."""
    server = make_server()
    async with connect(server, capabilities=CAPABILITIES) as peer:
        await peer.request("tools/call", {"name": "visit"})
        server.notify_elicitation_complete("t1")
        assert await told(peer) == []


async def test_only_so_many_pages_are_remembered():
    """The oldest of a connection is forgotten, and no other connection's."""
    server = make_server()
    async with (
        connect(server, era="legacy", capabilities=CAPABILITIES) as peer,
        connect(server, era="legacy", capabilities=CAPABILITIES) as other,
    ):
        await visited(other, "other")
        for each in range(MAX_PAGES + 1):
            await visited(peer, f"t{each}")

        for each in (0, 1, MAX_PAGES):
            server.notify_elicitation_complete(f"t{each}")

        server.notify_elicitation_complete("other")
        assert await told(peer) == ["t1", f"t{MAX_PAGES}"]
        assert await told(other) == ["other"]


@pytest.mark.parametrize(("era", "count"), [("legacy", 1), ("modern", 0)])
async def test_a_call_that_runs_tells_on_its_own_stream(era, count):
    """Where the version has the message; elsewhere it does nothing."""
    async with connect(make_server(), era=era, capabilities=CAPABILITIES) as peer:
        params = {"name": "tells"}
        if era == "modern":
            first = await peer.request("tools/call", params)
            answers = {"ask1": {"action": "accept"}}
            params |= {"requestState": first["requestState"], "inputResponses": answers}
            await peer.request("tools/call", params)
        else:
            id = await peer.start("tools/call", params)
            await anyio.wait_all_tasks_blocked()
            [question] = peer.notifications
            answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}}
            await peer.send(answer)
            await peer.answer(id)

        assert len(await told(peer)) == count


# The error.


@pytest.mark.parametrize("tool", ["first", "in_group"])
async def test_a_legacy_client_is_told_by_an_error(tool):
    """-32042 with the pages, whose end it is told; then it calls again."""
    server = make_server()
    async with connect(server, era="legacy", capabilities=CAPABILITIES) as peer:
        with pytest.raises(PeerError) as caught:
            await peer.call_tool(tool)

        assert caught.value.code == -32042
        [page] = ElicitationRequiredErrorData.model_validate(caught.value.detail).elicitations
        assert (page.mode, page.url, page.elicitation_id) == ("url", URL, "t1")
        server.done.add("t1")
        server.notify_elicitation_complete("t1")
        assert await told(peer) == ["t1"]
        assert (await peer.call_tool("first")).text == "welcome"


@pytest.mark.parametrize("tool", ["first", "in_group"])
async def test_a_modern_client_is_asked_in_a_round(tool):
    """It never sees the error; while the page is not done, it is asked again."""
    server = make_server()
    async with connect(server, capabilities=CAPABILITIES) as peer:
        params = {"name": tool}
        for _ in range(2):
            result = await peer.request("tools/call", params)
            InputRequiredResult.model_validate(result)
            assert result["inputRequests"]["page1"]["params"]["url"] == URL
            params["requestState"] = result["requestState"]
            params["inputResponses"] = {"page1": {"action": "accept"}}

        server.done.add("t1")
        assert (await peer.request("tools/call", {**params}))["resultType"] == "complete"


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_user_who_does_not_agree_is_not_asked_without_end(action):
    """The call fails with what the user chose."""
    async with connect(make_server(), capabilities=CAPABILITIES) as peer:
        result = await peer.request("tools/call", {"name": "first"})
        params = {"name": "first", "requestState": result["requestState"]}
        params["inputResponses"] = {"page1": {"action": action}}
        failed = await peer.request("tools/call", params)
        assert failed["isError"]
        assert action in failed["content"][0]["text"]


@pytest.mark.parametrize(
    ("version", "capabilities"),
    [
        ("2025-11-25", {"elicitation": {}}),
        ("2025-06-18", CAPABILITIES),
        ("2024-11-05", CAPABILITIES),
        ("2026-07-28", {"elicitation": {}}),
    ],
)
async def test_a_client_that_opens_no_pages_is_refused(version, capabilities):
    """It is told which capability is missing, and never of a page it cannot open."""
    async with connect(make_server(), version=version, capabilities=capabilities) as peer:
        with pytest.raises(PeerError) as caught:
            await peer.call_tool("first")

        assert caught.value.code == -32021
        assert caught.value.detail == {"requiredCapabilities": {"elicitation": {"url": {}}}}


async def test_a_layer_may_raise_it():
    """Further out than handlers do, and with the same outcome in both eras."""

    async def wall(next):
        raise UrlElicitationRequired(ElicitUrl("Log in", URL, id="t1"))

    server = make_server(middleware=[wall])
    async with connect(server, era="legacy", capabilities=CAPABILITIES) as peer:
        with pytest.raises(PeerError) as caught:
            await peer.call_tool("first")

        assert caught.value.code == -32042

    async with connect(server, capabilities=CAPABILITIES) as peer:
        result = await peer.request("tools/call", {"name": "first"})
        assert list(result["inputRequests"]) == ["page1"]


async def test_a_method_of_ones_own_does_not_show_the_error_to_a_modern_client():
    """Where no round can be, the call is refused."""
    server = make_server()

    @server.method("desk/open")
    async def open_desk(call: Call) -> dict[str, str]:
        raise UrlElicitationRequired(ElicitUrl("Log in", URL))

    async with connect(server, capabilities=CAPABILITIES) as peer:
        with pytest.raises(PeerError) as caught:
            await peer.request("desk/open")

        assert caught.value.code == 503


def test_an_error_without_a_page_asks_for_nothing():
    """It is the author's mistake."""
    with pytest.raises(TypeError, match="needs a page"):
        UrlElicitationRequired()
