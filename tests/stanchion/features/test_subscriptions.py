"""Who is told what of changes, in both eras, over connections in memory."""

from __future__ import annotations

from functools import partial

import anyio
import orjson
import pytest

from stanchion import (
    EVERY_REQUEST,
    LEGACY_VERSIONS,
    Connection,
    Denied,
    Middleware,
    Principal,
    Server,
    Tool,
)
from stanchion.listener import MAX_URI_LENGTH, MAX_URIS
from stanchion_testing import PeerError, connect
from stanchion_transports.memory import open_memory

TAG = "io.modelcontextprotocol/subscriptionId"
EVERYTHING = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
}


def offering(**options):
    """A server with one of each."""
    server = Server("s", **options)
    server.tool(echo)
    server.prompt(greet)
    server.resource("note://one")(note)
    server.resource("file://{+path}")(read_file)
    return server


def echo(text: str) -> str:
    return text


def greet() -> str:
    return "hello"


def note() -> str:
    return "one"


def read_file(path: str) -> str:
    return path


def other(name="other"):
    return Tool(name, lambda arguments: "done", input_schema={"type": "object"})


class ForStaff(Middleware):
    """Hides what is tagged so from everybody else."""

    name = "for_staff"
    methods = EVERY_REQUEST

    def visible(self, target, call):
        staff = call.principal is not None and call.principal.subject == "staff"
        return staff or "secret" not in target.tags


def secret_tool(name="vault"):
    tool = other(name)
    tool.tags = frozenset({"secret"})
    return tool


async def told(peer):
    """Give the notifications that came, as (what, `uri` or None), and forget them."""
    await anyio.wait_all_tasks_blocked()
    came = [
        (
            each["method"].removeprefix("notifications/"),
            (each.get("params") or {}).get("uri"),
        )
        for each in peer.notifications
    ]
    peer.notifications.clear()
    return came


async def listen(peer, notifications):
    """Start a listen and give its id, once it is acknowledged, and what the server honours."""
    id = await peer.start("subscriptions/listen", {"notifications": notifications})
    await anyio.wait_all_tasks_blocked()
    acknowledged = peer.notifications.pop()
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"]["_meta"] == {TAG: id}
    return id, acknowledged["params"]["notifications"]


class TestListen:
    async def test_every_kind_is_told_as_asked(self):
        """Additions, removals and replacements of every kind, templates as resources."""
        server = offering()
        async with connect(server) as peer:
            _, honoured = await listen(
                peer, {**EVERYTHING, "resourceSubscriptions": ["note://one"]}
            )
            assert honoured == {**EVERYTHING, "resourceSubscriptions": ["note://one"]}
            server.add_tool(other())
            assert await told(peer) == [("tools/list_changed", None)]
            server.add_tool(other(), replace=True)
            assert await told(peer) == [("tools/list_changed", None)]
            server.remove_tool("other")
            assert await told(peer) == [("tools/list_changed", None)]
            server.remove_prompt("greet")
            assert await told(peer) == [("prompts/list_changed", None)]
            server.remove_resource("file://{+path}")
            assert await told(peer) == [("resources/list_changed", None)]
            server.notify_resource_updated("note://one")
            assert await told(peer) == [("resources/updated", "note://one")]

    async def test_nothing_else_is_told(self):
        """Neither a kind nor a resource that was not asked for."""
        server = offering()
        async with connect(server) as peer:
            await listen(peer, {"promptsListChanged": True, "resourceSubscriptions": ["file://a"]})
            server.add_tool(other())
            server.remove_resource("note://one")
            server.notify_resource_updated("file://b")
            assert await told(peer) == []
            server.notify_resource_updated("file://a")
            assert await told(peer) == [("resources/updated", "file://a")]

    @pytest.mark.parametrize("id", [7, "7"])
    async def test_everything_is_tagged_with_the_id_as_it_was_sent(self, judged, id):
        """The acknowledgement first, and the answer too; the official models accept all."""
        async with offering() as server:
            peer = await judged(server)
            async with anyio.create_task_group() as group:
                answers = []

                async def ask():
                    asked = {"notifications": {"toolsListChanged": True}}
                    answers.append(await peer.ask("subscriptions/listen", asked, id=id))

                group.start_soon(ask)
                await anyio.wait_all_tasks_blocked()
                server.add_tool(other())
                await anyio.wait_all_tasks_blocked()
                await server.drain(1)

            assert [each["method"] for each in peer.notifications] == [
                "notifications/subscriptions/acknowledged",
                "notifications/tools/list_changed",
            ]
            tags = [each["params"]["_meta"][TAG] for each in peer.notifications]
            assert tags == [id, id]
            assert answers[0]["result"]["resultType"] == "complete"
            assert answers[0]["result"]["_meta"][TAG] == id

    async def test_several_are_told_apart_by_their_tags(self):
        """On one connection, each with what it asked for."""
        server = offering()
        async with connect(server) as peer:
            tools, _ = await listen(peer, {"toolsListChanged": True})
            both, _ = await listen(peer, {"toolsListChanged": True, "promptsListChanged": True})
            server.add_tool(other())
            server.remove_prompt("greet")
            await anyio.wait_all_tasks_blocked()
            tags = [each["params"]["_meta"][TAG] for each in peer.notifications]
            assert sorted(tags) == [tools, both, both]

    async def test_what_is_hidden_is_not_told(self):
        """Neither a change of it nor that there is such a resource."""
        server = offering(middleware=[ForStaff()])
        server.resource("note://secret", tags={"secret"})(note)
        asked = {"toolsListChanged": True, "resourceSubscriptions": ["note://secret", "no://such"]}
        staff = Principal("staff")
        async with server, connect(server) as guest, connect(server, principal=staff) as member:
            assert (await listen(guest, asked))[1] == {"toolsListChanged": True}
            assert (await listen(member, asked))[1]["resourceSubscriptions"] == ["note://secret"]
            server.add_tool(secret_tool())
            server.notify_resource_updated("note://secret")
            assert await told(guest) == []
            assert len(await told(member)) == 2
            server.add_tool(other("vault"), replace=True)
            assert await told(guest) == [("tools/list_changed", None)]
            server.add_tool(secret_tool(), replace=True)
            assert await told(guest) == [("tools/list_changed", None)]
            server.remove_tool("vault")
            assert await told(guest) == []

    async def test_what_is_gone_is_not_told_of(self):
        """A resource that was removed is not read, so it does not change either."""
        server = offering()
        async with connect(server) as peer:
            await listen(peer, {"resourceSubscriptions": ["note://one"]})
            server.remove_resource("note://one")
            server.notify_resource_updated("note://one")
            assert await told(peer) == []

    async def test_cancellation_ends_it_without_an_answer(self):
        """And nothing is told any more."""
        server = offering()
        async with connect(server) as peer:
            id, _ = await listen(peer, EVERYTHING)
            assert server.changes.listens == 1
            await peer.cancel(id)
            await anyio.wait_all_tasks_blocked()
            assert server.changes.listens == 0
            server.add_tool(other())
            assert await told(peer) == []
            assert not peer.answered(id)

    async def test_a_drain_answers_it_and_does_not_wait_for_it(self):
        """The result is complete; a listen that comes later is refused."""
        server = offering()
        async with connect(server) as peer:
            id, _ = await listen(peer, EVERYTHING)
            await server.drain(anyio.current_time() + 1000)
            answer = await peer.answer(id)
            assert answer["result"]["resultType"] == "complete"
            with pytest.raises(PeerError) as caught:
                await peer.request("subscriptions/listen", {"notifications": {}})

            assert caught.value.code == 503

    async def test_the_end_of_the_input_answers_it(self):
        """A peer that has said all is told no more, and its connection ends at once."""
        async with open_memory(offering()) as stream:
            meta = {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            params = {"notifications": EVERYTHING, "_meta": meta}
            message = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen"}
            await stream.send(orjson.dumps({**message, "params": params}))
            assert b"acknowledged" in await stream.receive()
            await stream.send_stream.aclose()
            assert orjson.loads(await stream.receive())["result"]["resultType"] == "complete"
            with pytest.raises(anyio.EndOfStream):
                await stream.receive()

    async def test_it_takes_no_call_its_place(self):
        """Calls are bounded by themselves, and so are listens."""
        server = offering(max_calls=1)
        async with connect(server) as peer:
            await listen(peer, EVERYTHING)
            await listen(peer, EVERYTHING)
            assert (await peer.call_tool("echo", {"text": "x"})).text == "x"

    async def test_listens_are_bounded(self):
        """More are refused, over all peers, until one ends."""
        server = offering(max_listens=2)
        async with server, connect(server) as first, connect(server) as second:
            id, _ = await listen(first, {})
            await listen(second, {})
            with pytest.raises(PeerError) as caught:
                await second.request("subscriptions/listen", {"notifications": {}})

            assert (caught.value.code, caught.value.detail["policy"]) == (503, "max_listens")
            await first.cancel(id)
            await anyio.wait_all_tasks_blocked()
            await listen(second, {})

    @pytest.mark.parametrize("asked", [{"unknown": True}, {"toolsListChanged": 1}])
    async def test_what_is_malformed_is_refused(self, asked):
        """With "invalid params"."""
        async with connect(offering()) as peer:
            with pytest.raises(PeerError) as caught:
                await peer.request("subscriptions/listen", {"notifications": asked})

            assert caught.value.code == -32602

    async def test_where_nothing_can_be_sent_there_is_no_listen(self, judged):
        """And no capability says so."""
        async with offering() as server:
            peer = await judged(server)
            asked = orjson.dumps(peer.message("subscriptions/listen", {"notifications": {}}))
            reply = await server.handle(asked, peer.connection)
            assert orjson.loads(reply.body)["error"]["code"] == -32601
            reply = await server.handle(
                orjson.dumps(peer.message("server/discover")), peer.connection
            )
            assert orjson.loads(reply.body)["result"]["capabilities"]["tools"] == {}

    async def test_a_modern_peer_is_told_that_it_can(self, judged):
        """Where a request may have a stream."""
        async with offering() as server:
            peer = await judged(server)
            capabilities = (await peer.ask("server/discover"))["result"]["capabilities"]
            assert capabilities["tools"] == capabilities["prompts"] == {"listChanged": True}
            assert capabilities["resources"] == {"listChanged": True, "subscribe": True}


class TestChain:
    async def test_a_listen_passes_the_chain_at_its_start(self):
        """A layer is done with it before anything is told, and may refuse it."""
        seen = []

        class Watching(Middleware):
            methods = EVERY_REQUEST

            async def __call__(self, next):
                if next.call.params["notifications"].get("promptsListChanged"):
                    raise Denied("no prompts", policy="watching")

                result = await next()
                seen.append(next.call.method)
                return result

        server = offering(middleware=[Watching()])
        async with connect(server) as peer:
            await listen(peer, {"toolsListChanged": True})
            assert seen == ["subscriptions/listen"]
            with pytest.raises(PeerError, match="no prompts"):
                await peer.request(
                    "subscriptions/listen", {"notifications": {"promptsListChanged": True}}
                )

    async def test_a_layer_that_fails_to_judge_hides(self, caplog):
        """Whoever adds the tool does not see that, and the log has it."""

        class Broken(Middleware):
            def visible(self, target, call):
                raise ValueError("cannot tell")

        server = offering(middleware=[Broken()])
        async with connect(server) as peer:
            await listen(peer, {"toolsListChanged": True})
            server.add_tool(other())
            assert await told(peer) == []
            assert "cannot tell" in caplog.text


class TestLegacy:
    @pytest.mark.parametrize("version", LEGACY_VERSIONS)
    async def test_a_peer_on_a_stream_is_told_of_its_lists(self, version):
        """From the handshake on, with no tag, and its capabilities say so."""
        server = offering()
        async with connect(server, version=version) as peer:
            capabilities = peer.initialized["capabilities"]
            assert capabilities["tools"] == capabilities["prompts"] == {"listChanged": True}
            assert capabilities["resources"] == {"listChanged": True, "subscribe": True}
            server.add_tool(other())
            await anyio.wait_all_tasks_blocked()
            changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
            assert peer.notifications == [changed]

    async def test_what_is_hidden_is_not_told(self):
        """As for modern peers."""
        server = offering(middleware=[ForStaff()])
        staff = partial(connect, server, era="legacy", principal=Principal("staff"))
        async with server, connect(server, era="legacy") as guest, staff() as member:
            server.add_tool(secret_tool())
            assert await told(guest) == []
            assert await told(member) == [("tools/list_changed", None)]

    async def test_a_resource_is_told_of_between_subscribe_and_unsubscribe(self):
        """Only to the peer that subscribed, and only of that resource."""
        server = offering()
        era = partial(connect, server, era="legacy")
        async with server, era() as peer, era() as silent:
            for uri in ("note://one", "file://a/b"):
                assert await peer.request("resources/subscribe", {"uri": uri}) == {}
                server.notify_resource_updated(uri)
                server.notify_resource_updated("file://other")
                assert await told(peer) == [("resources/updated", uri)]
                assert await peer.request("resources/unsubscribe", {"uri": uri}) == {}
                server.notify_resource_updated(uri)
                assert await told(peer) == []

            assert await told(silent) == []

    async def test_what_may_not_be_read_may_not_be_subscribed_to(self):
        """A hidden resource and one that is not there look the same."""
        server = offering(middleware=[ForStaff()])
        server.resource("note://secret", tags={"secret"})(note)
        async with connect(server, era="legacy") as peer:
            for uri in ("note://secret", "note://none", "file://../x"):
                with pytest.raises(PeerError) as caught:
                    await peer.request("resources/subscribe", {"uri": uri})

                assert (caught.value.code, caught.value.detail) == (-32002, {"uri": uri})

    async def test_subscriptions_are_bounded(self):
        """In number and in length; one that there is counts once."""
        async with connect(offering(), era="legacy") as peer:
            long = "file://" + "x" * MAX_URI_LENGTH
            with pytest.raises(PeerError) as caught:
                await peer.request("resources/subscribe", {"uri": long})

            assert caught.value.code == -32602
            for number in range(MAX_URIS):
                await peer.request("resources/subscribe", {"uri": f"file://{number}"})

            await peer.request("resources/subscribe", {"uri": "file://0"})
            with pytest.raises(PeerError) as caught:
                await peer.request("resources/subscribe", {"uri": "note://one"})

            assert caught.value.code == 503
            await peer.request("resources/unsubscribe", {"uri": "file://0"})
            await peer.request("resources/subscribe", {"uri": "note://one"})

    @pytest.mark.parametrize("method", ["resources/subscribe", "resources/unsubscribe"])
    async def test_a_peer_without_a_stream_cannot_subscribe(self, judged, method):
        """Nor is it told that it can."""
        async with offering() as server:
            peer = await judged(server, "2025-11-25", connection=Connection("http"))
            answer = await peer.ask(method, {"uri": "note://one"})
            assert answer["error"]["code"] == -32601

    async def test_a_closed_connection_is_forgotten(self):
        """What was kept of it is let go."""
        server = offering()
        async with server:
            async with connect(server, era="legacy"):
                assert server.changes.connections == 1

            assert server.changes.connections == 0
