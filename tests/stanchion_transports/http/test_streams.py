"""The streams of legacy sessions: told of changes, lost and resumed, let go, ended, bounded."""

from __future__ import annotations

from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import orjson
import pytest

from stanchion import (
    EVERY_REQUEST,
    Call,
    ConfigurationError,
    Denied,
    MemoryEventStore,
    Middleware,
    Tool,
)
from stanchion_testing import connect as connect_memory
from stanchion_transports.http import app
from stanchion_transports.http import streams as streams_module

from .peer import (
    Desk,
    body_of,
    by_token,
    event_of,
    ids_of,
    initialize,
    legacy_call,
    serving,
    tool_call,
)

STREAM = {"accept": "text/event-stream"}
OLD = "2025-06-18"


def other(name="other"):
    """Make a tool to add."""
    return Tool(name, lambda arguments: "done", input_schema={"type": "object"})


def method_of(chunk):
    """Give the method of a chunk's last message."""
    return event_of(chunk)["method"].removeprefix("notifications/")


async def until(condition):
    """Wait, without a clock, until *condition* holds."""
    with anyio.fail_after(10):
        while not condition():
            await anyio.lowlevel.checkpoint()


async def open_stream(wire, session, last_event=None):
    """Open a session's stream; gives the first chunk, which is there before anything changes."""
    resumed = {} if last_event is None else {"last-event-id": last_event}
    await wire.send({**STREAM, **session, **resumed}, method="GET")
    head = await wire.head()
    assert (head.status, head.headers["content-type"]) == (200, "text/event-stream")
    assert head.headers["x-accel-buffering"] == "no"
    return await wire.chunk()


async def refused(wire, session, **fields):
    """Ask for a stream that is not opened."""
    return await wire.ask({**STREAM, **session, **fields}, method="GET")


class TestChanges:
    async def test_a_session_is_told_what_changes(self, desk):
        """On its stream, of what is added and removed, while it calls beside it."""
        async with serving(desk.server) as connect, connect() as wire, connect() as stream:
            hello = await wire.ask({}, initialize())
            assert hello.json["result"]["capabilities"]["tools"] == {"listChanged": True}
            session = {"mcp-session-id": hello.headers["mcp-session-id"]}
            first = await open_stream(stream, session)
            assert len(ids_of(first)) == 1
            assert first.endswith(b"data: \n\n")
            desk.server.add_tool(other())
            assert method_of(await stream.chunk()) == "tools/list_changed"
            assert (await wire.ask(session, legacy_call("echo", text="x"))).text == "x"
            desk.server.remove_tool("other")
            assert method_of(await stream.chunk()) == "tools/list_changed"

    async def test_an_older_client_gets_no_event_without_a_message(self, desk):
        """It would take its empty text for one."""
        async with serving(desk.server) as connect, connect() as wire, connect() as stream:
            session = await wire.start_session(OLD)
            assert await open_stream(stream, session) == b": open\n\n"
            desk.server.add_tool(other())
            chunk = await stream.chunk()
            assert method_of(chunk) == "tools/list_changed"
            assert len(ids_of(chunk)) == 1

    async def test_a_session_subscribes_to_resources(self, desk):
        """Before its stream is there or after, and no longer once it unsubscribes."""
        for name in ("one", "two"):
            desk.server.resource(f"note://{name}")(lambda: "text")

        async with serving(desk.server) as connect, connect() as wire, connect() as stream:
            session = await wire.start_session()

            async def about(method, uri):
                body = body_of(id=5, method=f"resources/{method}", params={"uri": uri})
                return (await wire.ask(session, body)).json

            assert (await about("subscribe", "note://one"))["result"] == {}
            assert (await about("subscribe", "note://none"))["error"]["code"] == -32002
            desk.server.notify_resource_updated("note://one")
            await open_stream(stream, session)
            told = event_of(await stream.chunk())
            assert told["method"] == "notifications/resources/updated"
            assert told["params"] == {"uri": "note://one"}
            assert (await about("subscribe", "note://two"))["result"] == {}
            assert (await about("unsubscribe", "note://one"))["result"] == {}
            desk.server.notify_resource_updated("note://one")
            desk.server.notify_resource_updated("note://two")
            assert event_of(await stream.chunk())["params"] == {"uri": "note://two"}

    async def test_two_sessions_are_told_apart(self, desk):
        """Each hears of what it subscribed to."""
        for name in ("one", "two"):
            desk.server.resource(f"note://{name}")(lambda: "text")

        async with (
            serving(desk.server) as connect,
            connect() as wire,
            connect() as a,
            connect() as b,
        ):
            sessions = {}
            for stream, name in ((a, "one"), (b, "two")):
                session = sessions[stream] = await wire.start_session()
                uri = {"uri": f"note://{name}"}
                await wire.ask(session, body_of(id=1, method="resources/subscribe", params=uri))
                await open_stream(stream, session)

            desk.server.notify_resource_updated("note://two")
            desk.server.notify_resource_updated("note://one")
            assert event_of(await a.chunk())["params"] == {"uri": "note://one"}
            assert event_of(await b.chunk())["params"] == {"uri": "note://two"}

    async def test_a_later_stream_takes_over(self, desk):
        """A message goes to one stream only, and the earlier one ends."""
        async with (
            serving(desk.server) as connect,
            connect() as wire,
            connect() as a,
            connect() as b,
        ):
            session = await wire.start_session()
            await open_stream(a, session)
            await open_stream(b, session)
            assert await a.chunk() == b""
            desk.server.add_tool(other())
            assert method_of(await b.chunk()) == "tools/list_changed"
            assert desk.server.changes.listens == 1

    async def test_a_layer_refuses_a_stream(self):
        """The stream passes the chain like any request, in the name of who opens it now."""

        class Members(Middleware):
            methods = EVERY_REQUEST

            async def __call__(self, next):
                who = next.call.principal
                if next.call.method == "subscriptions/listen" and who.subject != "ada":
                    raise Denied("members only")

                return await next()

            def visible(self, target, call):
                return call.principal is not None and call.principal.subject == "ada"

        desk = Desk(middleware=[Members()])
        async with (
            serving(desk.server, authenticate=by_token) as connect,
            connect() as wire,
            connect() as stream,
        ):
            for subject, status in (("ada", 200), ("bob", 403)):
                token = {"authorization": f"Bearer {subject}"}
                hello = await wire.ask(token, initialize())
                session = token | {"mcp-session-id": hello.headers["mcp-session-id"]}
                if status == 200:
                    await open_stream(stream, session)
                else:
                    answer = await refused(wire, session)
                    assert (answer.status, answer.error) == (status, 403)

            desk.server.add_tool(other())
            assert method_of(await stream.chunk()) == "tools/list_changed"


class TestResuming:
    async def test_what_was_missed_is_sent_again(self, desk):
        """Of the stream that was lost, and of no other; then it goes on."""
        async with serving(desk.server) as connect, connect() as wire:
            session = await wire.start_session()
            async with connect() as lost:
                first = await open_stream(lost, session)
                desk.server.add_tool(other())
                await lost.chunk()
                streamed = await wire.ask(session, legacy_call("steps", progress=1, count=2))
                assert len(streamed.ids) == 4

            await until(lambda: not desk.server.changes.listens)
            desk.server.remove_tool("other")  # while nobody is there
            async with connect() as stream:
                again = await open_stream(stream, session, ids_of(first)[-1])
                assert again.count(b"tools/list_changed") == 1
                assert b"progress" not in again
                assert len(ids_of(again)) == 2
                assert method_of(await stream.chunk()) == "tools/list_changed"

    async def test_where_it_cannot_be_sent_again_all_is_due(self, desk):
        """The session hears of everything that it asked for, as if it had changed."""
        desk.server.resource("note://one")(lambda: "text")
        async with serving(desk.server) as connect, connect() as wire, connect() as stream:
            session = await wire.start_session()
            subscribe = body_of(id=1, method="resources/subscribe", params={"uri": "note://one"})
            await wire.ask(session, subscribe)
            await open_stream(stream, session, "get.0123456789abcdef-7")
            told = [method_of(await stream.chunk()) for _ in range(4)]
            assert sorted(told) == [
                "prompts/list_changed",
                "resources/list_changed",
                "resources/updated",
                "tools/list_changed",
            ]

    async def test_an_answer_is_resumed(self, desk):
        """The call runs on without its connection, and its result waits for the client."""
        async with serving(desk.server) as connect, connect() as wire:
            session = await wire.start_session()
            async with connect() as lost:
                await lost.send(session, legacy_call("hold", id=9, progress="t", told=True))
                await lost.head()
                seen = ids_of(await lost.chunk())

            async with connect() as stream:
                assert (await open_stream(stream, session, seen[-1])) == b": resumed\n\n"
                desk.release.set()
                answer = event_of(await stream.chunk())
                assert answer["id"] == 9
                assert answer["result"]["content"][0]["text"] == "hold released"
                assert await stream.chunk() == b""

            async with connect() as late:
                await open_stream(late, session, seen[0])
                rest = await late.chunk()
                assert len(ids_of(rest)) == 2
                assert event_of(rest) == answer

        assert desk.cancelled == []

    async def test_a_lost_call_is_cancelled_by_its_client(self, desk):
        """With a notification, since a lost connection says nothing; the stream ends unanswered."""
        async with serving(desk.server) as connect, connect() as wire:
            session = await wire.start_session()
            async with connect() as lost:
                await lost.send(session, legacy_call("hold", id=9, progress="t", told=True))
                await lost.head()
                seen = ids_of(await lost.chunk())

            async with connect() as stream:
                await open_stream(stream, session, seen[-1])
                cancel = body_of(method="notifications/cancelled", params={"requestId": 9})
                await wire.ask(session, cancel)
                assert await stream.chunk() == b""

        assert desk.cancelled == ["hold"]

    async def test_a_call_lets_its_connection_go(self, desk):
        """The client is told when to come back, and finds the rest."""
        gone = anyio.Event()

        @desk.server.tool
        async def slow(call: Call) -> str:
            await call.release_connection(retry_after=0.25)
            await call.release_connection()
            await call.progress(1)
            gone.set()
            await desk.release.wait()
            return "at last"

        async with serving(desk.server) as connect, connect() as wire, connect() as stream:
            session = await wire.start_session()
            answer = await wire.ask(session, legacy_call("slow", id=3, progress="t"))
            assert answer.body.endswith(b"retry: 250\n\n")
            assert len(answer.ids) == 1
            await gone.wait()
            await open_stream(stream, session, answer.ids[0])
            assert method_of(await stream.chunk()) == "progress"
            desk.release.set()
            assert event_of(await stream.chunk())["id"] == 3
            assert (await wire.ask(session, legacy_call("echo", text="x"))).text == "x"

    @pytest.mark.parametrize("way", ["old", "modern", "json_only", "memory"])
    async def test_a_connection_that_cannot_be_let_go_is_kept(self, desk, way):
        """Where the client would not come back, the result is its answer."""

        @desk.server.tool
        async def slow(call: Call) -> str:
            await call.release_connection()
            return "at once"

        json_only = way == "json_only"
        async with serving(desk.server, json_only=json_only) as connect, connect() as wire:
            if way == "modern":
                assert (await wire.ask(*tool_call("slow"))).text == "at once"
            elif way == "memory":
                async with connect_memory(desk.server, era="legacy") as peer:
                    assert (await peer.call_tool("slow")).text == "at once"
            else:
                session = await wire.start_session(OLD if way == "old" else "2025-11-25")
                assert (await wire.ask(session, legacy_call("slow"))).text == "at once"

    @pytest.mark.parametrize("seconds", [-1, float("inf"), float("nan")])
    async def test_a_wait_that_makes_no_sense_is_refused(self, desk, seconds):
        """Before anything is let go."""

        @desk.server.tool
        async def slow(call: Call) -> str:
            with pytest.raises(ValueError, match="0 or more"):
                await call.release_connection(seconds)

            return "kept"

        async with serving(desk.server) as connect, connect() as wire:
            session = await wire.start_session()
            assert (await wire.ask(session, legacy_call("slow"))).text == "kept"

    async def test_silence_opens_a_stream_that_can_be_resumed(self, desk):
        """The sign of life is the event that a client can name."""
        async with serving(desk.server, keep_alive=0.05) as connect, connect() as wire:
            session = await wire.start_session()
            await wire.send(session, legacy_call("hold", id=4))
            await wire.head()
            assert len(ids_of(await wire.chunk())) == 1
            assert event_of(await wire.chunk()) is None
            desk.release.set()
            chunk = await wire.chunk()
            while chunk.startswith(b":"):
                chunk = await wire.chunk()

            assert event_of(chunk)["id"] == 4


class TestRefusals:
    @pytest.mark.parametrize(
        ("fields", "status"),
        [
            ({"mcp-session-id": None}, 400),
            ({"mcp-session-id": "made-up"}, 404),
            ({"mcp-protocol-version": "1999-01-01"}, 400),
            ({"mcp-protocol-version": "2026-07-28"}, 405),
            ({"accept": "application/json"}, 406),
            ({"last-event-id": "nonsense"}, 400),
            ({"last-event-id": "post.x-"}, 400),
            ({"last-event-id": "post.x-99999999999"}, 400),
            ({"last-event-id": "post.x-\u00b2"}, 400),
            ({"last-event-id": "-1"}, 400),
            ({"last-event-id": "post.0123456789abcdef-1"}, 410),
        ],
    )
    async def test_what_opens_no_stream(self, desk, fields, status):
        """Is told why, and the session goes on."""
        async with serving(desk.server) as connect, connect() as wire:
            session = await wire.start_session()
            answer = await refused(wire, session, **fields)
            assert answer.status == status
            assert status == 405 or answer.error in (-32600, -32022)
            assert (await wire.ask(session, legacy_call("echo", text="x"))).text == "x"

    async def test_another_sessions_answer_is_not_resumed(self, desk):
        """It looks like one that has ended long ago; its own session still finds it."""
        async with serving(desk.server) as connect, connect() as wire, connect() as other:
            mine, foreign = await wire.start_session(), await wire.start_session()
            answer = await wire.ask(mine, legacy_call("steps", progress=1, count=1))
            assert (await refused(wire, foreign, **{"last-event-id": answer.ids[0]})).status == 410
            await open_stream(other, mine, answer.ids[0])
            assert b"progress" in await other.chunk()

    async def test_another_principal_opens_no_stream(self, desk):
        """The session looks as if it did not exist."""
        async with serving(desk.server, authenticate=by_token) as connect, connect() as wire:
            ada = {"authorization": "Bearer ada"}
            hello = await wire.ask(ada, initialize())
            session = {"mcp-session-id": hello.headers["mcp-session-id"]}
            assert (await refused(wire, session, authorization="Bearer bob")).status == 404
            assert (await refused(wire, session)).status == 401

    @pytest.mark.parametrize("options", [{"json_only": True}, {"sessions": False}])
    async def test_where_there_are_no_streams_get_is_not_allowed(self, desk, options):
        """And says which methods are."""
        async with serving(desk.server, **options) as connect, connect() as wire:
            answer = await refused(wire, {})
            assert answer.status == 405
            assert "GET" not in answer.headers["allow"]

    async def test_resumed_answers_are_bounded(self, desk, monkeypatch):
        """One that is too many is refused, until another ends."""
        monkeypatch.setattr(streams_module, "MAX_RESUMED", 1)
        async with serving(desk.server) as connect, connect() as wire:
            session = await wire.start_session()
            async with connect() as lost:
                await lost.send(session, legacy_call("hold", progress="t", told=True))
                await lost.head()
                seen = ids_of(await lost.chunk())

            async with connect() as stream:
                await open_stream(stream, session, seen[-1])
                again = await refused(wire, session, **{"last-event-id": seen[-1]})
                assert (again.status, again.error) == (503, 503)

            while (await refused_or_open(connect, session, seen[-1])) == 503:
                await anyio.lowlevel.checkpoint()

            desk.release.set()

    async def test_open_streams_are_bounded(self):
        """As listens are, with which they are counted."""
        desk = Desk(max_listens=1)
        async with serving(desk.server) as connect, connect() as wire, connect() as stream:
            await open_stream(stream, await wire.start_session())
            answer = await refused(wire, await wire.start_session())
            assert (answer.status, answer.error) == (503, 503)
            assert orjson.loads(answer.body)["error"]["data"]["policy"] == "max_listens"


async def refused_or_open(connect, session, last_event):
    """Ask to resume an answer, and give the status."""
    async with connect() as wire:
        await wire.send({**STREAM, **session, "last-event-id": last_event}, method="GET")
        return (await wire.head()).status


class TestEnd:
    async def test_ending_a_session_ends_its_streams(self, desk):
        """And nothing of it is left."""
        store = MemoryEventStore()
        async with (
            serving(desk.server, event_store=store) as connect,
            connect() as wire,
            connect() as stream,
        ):
            session = await wire.start_session()
            await open_stream(stream, session)
            assert (await wire.ask(session, method="DELETE")).status == 204
            assert await stream.chunk() == b""
            await until(lambda: not desk.server.changes.listens)
            assert desk.server.changes.connections == 0
            assert (await refused(wire, session)).status == 404

    async def test_a_client_that_goes_away_leaves_nothing_running(self, desk):
        """What its session hears of is kept for when it comes back."""
        async with serving(desk.server) as connect, connect() as wire:
            session = await wire.start_session()
            async with connect() as stream:
                await open_stream(stream, session)
                assert desk.server.changes.listens == 1

            await until(lambda: not desk.server.changes.listens)
            assert desk.server.changes.connections == 1

    async def test_an_idle_session_is_reaped(self, desk):
        """By itself; one that had subscribed is told so when it comes back."""
        desk.server.resource("note://one")(lambda: "text")
        async with serving(desk.server, session_idle=0.05) as connect, connect() as wire:
            plain, subscribed = await wire.start_session(), await wire.start_session()
            subscribe = body_of(id=1, method="resources/subscribe", params={"uri": "note://one"})
            await wire.ask(subscribed, subscribe)
            assert desk.server.changes.connections == 1
            await until(lambda: not desk.server.changes.connections)
            assert (await wire.ask(subscribed, legacy_call("echo", text="x"))).status == 404
            assert (await wire.ask(plain, legacy_call("echo", text="x"))).text == "x"

    async def test_a_session_that_listens_is_not_idle(self, desk):
        """An open stream is never touched."""
        async with (
            serving(desk.server, session_idle=0.02) as connect,
            connect() as wire,
            connect() as stream,
        ):
            session = await wire.start_session()
            await open_stream(stream, session)
            ticks = [await wire.start_session() for _ in range(50)]
            assert len(ticks) == 50
            desk.server.add_tool(other())
            assert method_of(await stream.chunk()) == "tools/list_changed"

    async def test_a_stream_ends_when_its_session_lapses(self, desk):
        """Nobody is told anything for longer than the session lives."""
        async with (
            serving(desk.server, session_ttl=1.0) as connect,
            connect() as wire,
            connect() as stream,
        ):
            session = await wire.start_session()
            await stream.send({**STREAM, **session}, method="GET")
            answer = await stream.answer()
            assert answer.status in (200, 404)  # the token counts in whole seconds

    async def test_drain_ends_streams(self, desk):
        """An open stream does not hold up the end of serving, and its client sees it end."""
        async with serving(desk.server) as connect, connect() as wire, connect() as stream:
            session = await wire.start_session()
            await open_stream(stream, session)
            await desk.server.drain(0)
            assert await stream.chunk() == b""
            answer = await refused(wire, session)
            assert (answer.status, answer.error) == (503, 503)


@asynccontextmanager
async def two_replicas(**options):
    """Serve two servers as replicas of one, with one key."""
    key = b"k" * 32
    first, second = Desk(), Desk()
    async with (
        serving(first.server, session_keys=[key], **options) as one,
        serving(second.server, session_keys=[key], **options) as two,
    ):
        yield (first, one), (second, two)


async def test_another_replica_says_that_it_cannot_resume():
    """Rather than leave the client waiting; the session itself is served there."""
    async with two_replicas() as ((desk, one), (_, two)), one() as wire, two() as elsewhere:
        session = await wire.start_session()
        answer = await wire.ask(session, legacy_call("steps", progress=1, count=1))
        resume = {"last-event-id": answer.ids[0]}
        assert (await refused(elsewhere, session, **resume)).status == 410
        assert (await elsewhere.ask(session, legacy_call("echo", text="x"))).text == "x"
        assert desk.cancelled == []


async def test_replicas_that_share_a_store_resume_each_others_answers():
    """The stream is found wherever the client comes back."""
    store = MemoryEventStore()
    async with (
        two_replicas(event_store=store) as ((desk, one), (_, two)),
        one() as wire,
        two() as elsewhere,
    ):
        session = await wire.start_session()
        async with one() as lost:
            await lost.send(session, legacy_call("hold", id=9, progress="t", told=True))
            await lost.head()
            seen = ids_of(await lost.chunk())

        await open_stream(elsewhere, session, seen[-1])
        desk.release.set()
        assert event_of(await elsewhere.chunk())["id"] == 9


class TestPatience:
    async def test_a_call_whose_client_does_not_come_back_is_cancelled(self, desk):
        """Abandoned calls must not run for ever, however many are left behind."""
        async with serving(desk.server, resume_within=0.01) as connect, connect() as wire:
            session = await wire.start_session()
            async with connect() as lost:
                await lost.send(session, legacy_call("hold", progress="t", told=True))
                await lost.head()

            await until(lambda: desk.cancelled)
            assert (await wire.ask(session, legacy_call("echo", text="x"))).text == "x"

    async def test_patience_is_positive(self, desk):
        """A call could not be resumed otherwise."""
        with pytest.raises(ConfigurationError, match="resume_within"):
            app(desk.server, resume_within=0)
