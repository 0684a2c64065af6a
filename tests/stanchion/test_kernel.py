"""The kernel: one message in, one reply out, whatever a handler does."""

from __future__ import annotations

import asyncio
import logging

import anyio
import orjson
import pytest

from stanchion import (
    EVERY_REQUEST,
    NO_REPLY,
    Call,
    Connection,
    Denied,
    Middleware,
    Server,
    Tool,
    ToolError,
    ToolResult,
    decode,
)
from stanchion.kernel import MAX_BATCH
from stanchion.protocol import LEGACY_VERSIONS, VERSIONS

BATCHES, LEGACY, MODERN = "2025-03-26", "2025-11-25", "2026-07-28"
SECRET = "hunter2"  # what no peer may ever read


class Desk:
    """A server with `echo`, which answers at once, and `wait`, which waits for `release`.

    Attributes:
        server: The server.
        started: Set once `wait` runs.
        release: Lets `wait` answer.
    """

    def __init__(self, *layers, **options):
        self.server = Server("desk", middleware=layers, **options)
        self.started = anyio.Event()
        self.release = anyio.Event()
        self.server.add_tool(Tool("echo", self.echo, input_schema={"type": "object"}))
        self.server.add_tool(Tool("wait", self.wait))

    async def echo(self, arguments):
        return arguments.get("text", "")

    async def wait(self, arguments):
        self.started.set()
        await self.release.wait()
        return "released"


class Held(Middleware):
    """Holds every request until it is let go."""

    name = "held"
    methods = EVERY_REQUEST

    def __init__(self):
        self.reached = anyio.Event()
        self.let_go = anyio.Event()

    async def __call__(self, next):
        self.reached.set()
        await self.let_go.wait()
        return await next()


def text_of(answer):
    """Give the text of a tool's answer."""
    return answer["result"]["content"][0]["text"]


async def collect(answers, peer, *args, **options):
    """Ask and append the answer."""
    answers.append(await peer.ask(*args, **options))


def call_of(name, **arguments):
    """Give the method and params of a tool call."""
    return "tools/call", {"name": name, "arguments": arguments}


# Cancellation.


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_cancelled_call_is_not_answered_and_the_next_one_is(judged, version):
    """After a cancellation there is no response, and the server serves on."""
    desk, answers = Desk(), []
    async with desk.server, anyio.create_task_group() as group:
        peer = await judged(desk.server, version)
        for turn in range(3):
            desk.started = anyio.Event()
            group.start_soon(collect, answers, peer, "tools/call", {"name": "wait"})
            await desk.started.wait()
            (id,) = peer.connection.in_flight
            await peer.tell("notifications/cancelled", {"requestId": id, "reason": "enough"})
            await anyio.wait_all_tasks_blocked()
            assert answers == [None] * (turn + 1)
            assert text_of(await peer.ask(*call_of("echo", text="on"))) == "on"

        assert peer.connection.in_flight == {}
        assert desk.server.kernel.running == set()


@pytest.mark.parametrize("ending", ["returns", "raises", "shields"])
async def test_a_tool_that_resists_its_cancellation_is_not_answered_either(judged, ending):
    """What a tool does with its cancellation makes no difference to the peer."""
    server, answers, started = Server("s"), [], anyio.Event()

    async def resist(arguments, call):
        started.set()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            if ending == "shields":
                with anyio.CancelScope(shield=True):
                    await call.progress(1)
                    await anyio.lowlevel.checkpoint()

            if ending == "raises":
                raise ValueError(SECRET) from None

        return "too late"

    server.add_tool(Tool("resist", resist))
    async with server, anyio.create_task_group() as group:
        peer = await judged(server)
        group.start_soon(collect, answers, peer, "tools/call", {"name": "resist"})
        await started.wait()
        await peer.tell("notifications/cancelled", {"requestId": 1})

    assert answers == [None]


async def test_only_the_very_id_cancels(judged):
    """An id of another type, an unknown and a finished one cancel nothing."""
    desk, answers = Desk(), []
    async with desk.server, anyio.create_task_group() as group:
        peer = await judged(desk.server)
        await peer.ask(*call_of("echo"), id=7)
        group.start_soon(
            collect,
            answers,
            peer,
            "tools/call",
            {"name": "wait"},
        )
        await desk.started.wait()
        (id,) = peer.connection.in_flight
        for other in (str(id), 7, 99, True, 1.0, None, [id]):
            await peer.tell("notifications/cancelled", {"requestId": other})

        await anyio.wait_all_tasks_blocked()
        assert answers == []
        desk.release.set()

    assert text_of(answers[0]) == "released"


async def test_two_connections_with_the_same_id_never_meet(judged):
    """Answers and cancellations belong to a connection and an id, not to an id alone."""
    desk, first, second = Desk(), [], []
    async with desk.server, anyio.create_task_group() as group:
        one, two = await judged(desk.server), await judged(desk.server, LEGACY)
        group.start_soon(lambda: collect(first, one, "tools/call", {"name": "wait"}, id="x"))
        group.start_soon(lambda: collect(second, two, "tools/call", {"name": "wait"}, id="x"))
        await anyio.wait_all_tasks_blocked()
        await two.tell("notifications/cancelled", {"requestId": "x"})
        await anyio.wait_all_tasks_blocked()
        assert (first, second) == ([], [None])
        desk.release.set()

    assert text_of(first[0]) == "released"
    assert second == [None]


async def test_initialize_cannot_be_cancelled(judged):
    """A cancellation that names the handshake is ignored."""
    held, answers = Held(), []
    server = Desk(held).server
    async with server, anyio.create_task_group() as group:
        peer = await judged(server, MODERN)
        peer.version = LEGACY
        client = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {}}
        group.start_soon(collect, answers, peer, "initialize", client)
        await held.reached.wait()
        await peer.tell("notifications/cancelled", {"requestId": 1})
        await anyio.wait_all_tasks_blocked()
        held.let_go.set()

    assert answers[0]["result"]["protocolVersion"] == LEGACY


async def test_a_handshake_that_fails_leaves_the_connection_fresh(judged):
    """Only an answered `initialize` makes a connection initialized."""
    failing = [True]

    class Flaky(Middleware):
        methods = EVERY_REQUEST

        async def __call__(self, next):
            if failing.pop():
                raise Denied("not yet")

            return await next()

    server = Desk(Flaky()).server
    async with server:
        peer = await judged(server, MODERN)
        peer.version = LEGACY
        client = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {}}
        assert (await peer.ask("initialize", client))["error"]["code"] == 403
        assert peer.connection.version is None
        failing.append(False)
        assert "result" in await peer.ask("initialize", client)
        assert peer.connection.version == LEGACY
        assert (await peer.ask("initialize", client))["error"]["code"] == -32600


async def test_the_callers_own_cancellation_passes(judged):
    """A transport that is cancelled gets its cancellation, and the call is forgotten."""
    desk, after = Desk(), []
    async with desk.server:
        peer = await judged(desk.server)
        async with anyio.create_task_group() as group:

            async def ask():
                await peer.ask("tools/call", {"name": "wait"})
                after.append("reached")

            group.start_soon(ask)
            await desk.started.wait()
            group.cancel_scope.cancel()

        assert after == []
        assert peer.connection.in_flight == {}
        assert desk.server.kernel.running == set()


async def test_an_id_in_flight_is_taken(judged):
    """A second request under a running id is refused; the first goes on, and frees the id."""
    desk, answers = Desk(), []
    async with desk.server, anyio.create_task_group() as group:
        peer = await judged(desk.server)
        group.start_soon(lambda: collect(answers, peer, "tools/call", {"name": "wait"}, id=5))
        await desk.started.wait()
        refused = await peer.ask(*call_of("echo"), id=5)
        assert refused["error"]["code"] == -32600
        assert refused["id"] == 5
        assert text_of(await peer.ask(*call_of("echo", text="other"), id="5")) == "other"
        desk.release.set()
        await anyio.wait_all_tasks_blocked()
        assert text_of(answers[0]) == "released"
        assert text_of(await peer.ask(*call_of("echo", text="free"), id=5)) == "free"


@pytest.mark.parametrize(("ids", "refused"), [(("a", "a"), 400), (("a", "b"), 503)])
async def test_what_was_dispatched_and_not_begun_is_checked_when_it_begins(judged, ids, refused):
    """Two messages that a transport hands over before it runs either are no way round a check."""
    desk, statuses = Desk(max_calls=1 if refused == 503 else 2), []
    async with desk.server, anyio.create_task_group() as group:
        peer = await judged(desk.server)
        begun = [
            desk.server.dispatch(
                decode(orjson.dumps(peer.message("tools/call", {"name": "wait"}, id=id))),
                peer.connection,
            )
            for id in ids
        ]

        async def finish(coming):
            statuses.append((await coming).status)

        for coming in begun:
            group.start_soon(finish, coming)

        await anyio.wait_all_tasks_blocked()
        assert len(desk.server.kernel.running) == 1
        desk.release.set()

    assert sorted(statuses) == [200, refused]
    assert peer.connection.in_flight == {}


# Ping, bounds, drain.


async def test_ping_is_always_answered(judged):
    """Before the handshake, at the bound, under a running id and while draining: ping answers."""
    desk, answers = Desk(max_calls=1), []
    async with desk.server, anyio.create_task_group() as group:
        fresh = await judged(desk.server, MODERN)
        fresh.version = LEGACY
        assert (await fresh.ask("ping"))["result"] == {}
        peer = await judged(desk.server, LEGACY)
        group.start_soon(lambda: collect(answers, peer, "tools/call", {"name": "wait"}, id=5))
        await desk.started.wait()
        assert (await peer.ask("ping", id=5))["result"] == {}
        group.start_soon(desk.server.drain, 3600.0)
        await anyio.wait_all_tasks_blocked()
        assert (await peer.ask("ping"))["result"] == {}
        assert (await fresh.ask("ping"))["result"] == {}
        desk.release.set()

    assert text_of(answers[0]) == "released"


@pytest.mark.parametrize("version", [LEGACY, MODERN])
async def test_more_than_max_calls_are_refused(judged, version):
    """The bound holds over all peers, and the refusal says when to try again."""
    desk, answers = Desk(max_calls=2), []
    async with desk.server, anyio.create_task_group() as group:
        one, two = await judged(desk.server, version), await judged(desk.server, version)
        for peer in (one, two):
            group.start_soon(collect, answers, peer, "tools/call", {"name": "wait"})

        await anyio.wait_all_tasks_blocked()
        refused = await one.ask(*call_of("echo"))
        assert refused["error"]["code"] == 503
        assert refused["error"]["data"]["policy"] == "max_calls"
        assert refused["error"]["data"]["retryAfterSeconds"] == 1.0
        desk.release.set()
        await anyio.wait_all_tasks_blocked()
        assert [text_of(answer) for answer in answers] == ["released"] * 2
        assert text_of(await one.ask(*call_of("echo", text="room"))) == "room"


async def test_drain_waits_for_what_runs_and_refuses_what_comes(judged):
    """Running calls may end; new ones are sent elsewhere, over HTTP with 503 and `Retry-After`."""
    desk, answers, drained = Desk(), [], anyio.Event()

    async def drain():
        await desk.server.drain(3600.0)
        drained.set()

    async with desk.server, anyio.create_task_group() as group:
        peer = await judged(desk.server)
        group.start_soon(collect, answers, peer, "tools/call", {"name": "wait"})
        await desk.started.wait()
        group.start_soon(drain)
        group.start_soon(drain)  # a second signal waits for the same
        await anyio.wait_all_tasks_blocked()
        assert desk.server.draining
        reply = await peer.reply(peer.message(*call_of("echo")))
        assert reply.status == 503
        assert reply.headers["Retry-After"] == "1"
        assert orjson.loads(reply.body)["error"]["data"]["policy"] == "drain"
        assert not drained.is_set()
        desk.release.set()
        await drained.wait()

    assert text_of(answers[0]) == "released"


@pytest.mark.parametrize("version", [LEGACY, MODERN])
async def test_drain_stops_the_rest_with_an_answer(judged, version):
    """When the grace is over, what still runs is cancelled and its caller told why."""
    desk, answers = Desk(), []
    async with desk.server, anyio.create_task_group() as group:
        peer = await judged(desk.server, version)
        for _ in range(2):
            group.start_soon(collect, answers, peer, "tools/call", {"name": "wait"})

        await anyio.wait_all_tasks_blocked()
        await desk.server.drain(0)

    assert [answer["error"]["code"] for answer in answers] == [503, 503]
    assert answers[0]["error"]["data"]["reason"] == "the server is shutting down"


async def test_drain_of_an_idle_server_returns_at_once(judged):
    """Nothing runs, so there is nothing to wait for."""
    desk = Desk()
    async with desk.server:
        peer = await judged(desk.server)
        await desk.server.drain(3600.0)
        assert (await peer.ask(*call_of("echo")))["error"]["code"] == 503


@pytest.mark.parametrize("order", ["cancel first", "stop first"])
async def test_a_cancelled_call_is_not_answered_by_the_drain(judged, order):
    """A peer that cancelled wants no answer, whichever of the two came first."""
    server, answers, started, let_go = Server("s"), [], anyio.Event(), anyio.Event()

    async def stubborn(arguments):
        started.set()
        with anyio.CancelScope(shield=True):
            await let_go.wait()

    server.add_tool(Tool("stubborn", stubborn))
    async with server, anyio.create_task_group() as group:
        peer = await judged(server)
        group.start_soon(collect, answers, peer, "tools/call", {"name": "stubborn"})
        await started.wait()
        if order == "cancel first":
            await peer.tell("notifications/cancelled", {"requestId": 1})
            await server.drain(0)
        else:
            await server.drain(0)
            await peer.tell("notifications/cancelled", {"requestId": 1})

        let_go.set()

    assert answers == [None]


# Batches.


async def test_a_batch_is_answered_as_one(judged):
    """Each request of a batch is answered, notifications and responses are not."""
    desk = Desk()
    async with desk.server:
        peer = await judged(desk.server, BATCHES)
        batch = [
            peer.message(*call_of("echo", text="a"), id="a"),
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            peer.message("ping", id=2),
            {"jsonrpc": "2.0", "id": 3, "result": {}},
            peer.message("nope", id=4),
        ]
        answers = {answer["id"]: answer for answer in await peer.send(batch)}

    assert answers.keys() == {"a", 2, 4}
    assert text_of(answers["a"]) == "a"
    assert answers[2]["result"] == {}
    assert answers[4]["error"]["code"] == -32601


async def test_a_bad_member_does_not_spoil_the_batch(judged):
    """Each malformed member is answered by itself, a batch in a batch too."""
    desk = Desk()
    async with desk.server:
        peer = await judged(desk.server, BATCHES)
        bad = [1, None, [], {"id": 5}, {"jsonrpc": "2.0", "id": None, "method": "ping"}]
        answers = await peer.send([*bad, peer.message("ping", id=6)])

    errors = [answer for answer in answers if "error" in answer]
    assert sorted(str(answer["id"]) for answer in errors) == ["5"] + ["None"] * 4
    assert {answer["error"]["code"] for answer in errors} == {-32600}
    assert [answer["id"] for answer in answers if "result" in answer] == [6]


async def test_a_batch_without_requests_is_not_answered(judged):
    """Where nothing wants an answer there is none, as for a single notification."""
    desk = Desk()
    async with desk.server:
        peer = await judged(desk.server, BATCHES)
        reply = await peer.reply([{"jsonrpc": "2.0", "method": "notifications/initialized"}])

    assert (reply.body, reply.status) == (None, 202)


@pytest.mark.parametrize("size", [0, MAX_BATCH + 1])
async def test_empty_and_overlong_batches_are_refused_whole(judged, size):
    """A batch of nothing is invalid JSON-RPC, and one beyond the bound costs too much."""
    desk = Desk()
    async with desk.server:
        peer = await judged(desk.server, BATCHES)
        batch = [peer.message("ping") for _ in range(size)]
        reply = await peer.reply(batch)
        assert reply.status == 400
        message = peer.judge(reply, batch)
        assert (message["id"], message["error"]["code"]) == (None, -32600)
        assert len(await peer.send([peer.message("ping") for _ in range(MAX_BATCH)])) == MAX_BATCH


@pytest.mark.parametrize("version", sorted(set(VERSIONS) - {BATCHES}))
async def test_batches_exist_in_one_version(judged, version):
    """Where another version was negotiated, or none, a batch is refused whole."""
    desk = Desk()
    async with desk.server:
        peer = await judged(desk.server, version)
        answer = await peer.send([peer.message("ping")])

    assert (answer["id"], answer["error"]["code"]) == (None, -32600)
    assert BATCHES in answer["error"]["message"]


async def test_a_member_of_a_batch_can_be_cancelled(judged):
    """The rest of the batch is answered; a batch that is cancelled whole is not."""
    desk, replies = Desk(), []

    async def send(peer, batch):
        replies.append((await peer.reply(batch), batch))

    async with desk.server, anyio.create_task_group() as group:
        peer = await judged(desk.server, BATCHES)
        wait = peer.message("tools/call", {"name": "wait"}, id=1)
        for rest in ([peer.message("ping", id=2)], []):
            group.start_soon(send, peer, [wait, *rest])
            await anyio.wait_all_tasks_blocked()
            await peer.tell("notifications/cancelled", {"requestId": 1})
            await anyio.wait_all_tasks_blocked()

    assert peer.judge(*replies[0]) == [{"jsonrpc": "2.0", "id": 2, "result": {}}]
    assert replies[1][0].body is None


async def test_a_batch_whose_caller_goes_away_ends_whole(judged):
    """The cancellation of the caller reaches every member."""
    desk, after = Desk(), []
    async with desk.server:
        peer = await judged(desk.server, BATCHES)
        batch = [peer.message("tools/call", {"name": "wait"}) for _ in range(3)]
        async with anyio.create_task_group() as group:

            async def send():
                await peer.reply(batch)
                after.append("reached")

            group.start_soon(send)
            await anyio.wait_all_tasks_blocked()
            assert len(peer.connection.in_flight) == 3
            group.cancel_scope.cancel()

        assert after == []
        assert peer.connection.in_flight == {}


# Progress.


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("token", ["t", 0, 7, ""])
async def test_progress_is_sent_under_the_clients_token_and_rises(judged, version, token):
    """Only numbers above the last are sent, with the token as it came, before the answer."""
    server, calls = Server("s"), []

    async def work(arguments, call):
        calls.append(call)
        for step in (1, 1, 0, 2.5, float("nan"), float("inf"), 3):
            await call.progress(step, float("inf") if step == 1 else 4, "st\ud800p")

    server.add_tool(Tool("work", work))
    async with server:
        peer = await judged(server, version)
        await peer.ask("tools/call", {"name": "work"}, meta={"progressToken": token})
        await calls[0].progress(4)

    params = [notification["params"] for notification in peer.notifications]
    assert [each["progress"] for each in params] == [1, 2.5, 3]
    assert [each.get("total") for each in params] == [None, 4, 4]
    assert {each["message"] for each in params} == {"st?p"}
    assert all(each["progressToken"] == token for each in params)
    assert type(params[0]["progressToken"]) is type(token)


@pytest.mark.parametrize("meta", [{}, *({"progressToken": t} for t in (None, True, 1.5, [], {}))])
async def test_without_a_token_there_is_no_progress(judged, meta):
    """No token of ours is ever made up, and a boolean is no token."""
    server = Server("s")

    async def work(arguments, call):
        await call.progress(1)
        return str(call.progress_token)

    server.add_tool(Tool("work", work))
    async with server:
        peer = await judged(server)
        answer = await peer.ask("tools/call", {"name": "work"}, meta=meta)

    assert text_of(answer) == "None"
    assert peer.notifications == []


async def test_where_the_transport_sends_nothing_progress_does_nothing():
    """A transport without a way back costs the tool nothing."""
    server = Server("s")

    async def work(arguments, call):
        await call.progress(1)
        return "done"

    server.add_tool(Tool("work", work))
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": 1,
    }
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "work", "_meta": meta},
    }
    async with server:
        reply = await server.handle(orjson.dumps(request), Connection("memory"))

    assert text_of(orjson.loads(reply.body)) == "done"


# Whatever is raised.


class Unprintable(Exception):
    """An error that cannot even be shown."""

    def __str__(self):
        raise SystemExit(SECRET)

    __repr__ = __str__


def nested_group(depth):
    """Give exception groups in exception groups."""
    error = ValueError(SECRET)
    for _ in range(depth):
        error = BaseExceptionGroup(SECRET, [error])

    return error


RAISED = {
    "Exception": lambda: Exception(SECRET),
    "SystemExit": lambda: SystemExit(SECRET),
    "KeyboardInterrupt": lambda: KeyboardInterrupt(SECRET),
    "GeneratorExit": lambda: GeneratorExit(SECRET),
    "MemoryError": lambda: MemoryError(SECRET),
    "RecursionError": lambda: RecursionError(SECRET),
    "StopIteration": lambda: StopIteration(SECRET),
    "StopAsyncIteration": lambda: StopAsyncIteration(SECRET),
    "CancelledError": lambda: asyncio.CancelledError(SECRET),
    "group": lambda: BaseExceptionGroup(SECRET, [SystemExit(1), asyncio.CancelledError()]),
    "deep group": lambda: nested_group(150),
    "group of cancellations": lambda: BaseExceptionGroup(SECRET, [asyncio.CancelledError()]),
    "unprintable": Unprintable,
    "unserialisable tool error": lambda: ToolError(object()),
    "UnicodeError": lambda: UnicodeEncodeError("utf-8", SECRET, 0, 1, SECRET),
}


@pytest.mark.parametrize("place", ["async tool", "thread", "event loop", "layer", "after next"])
@pytest.mark.parametrize("what", RAISED)
async def test_whatever_is_raised_the_peer_is_answered_and_told_nothing(judged, place, what):
    """No exception ends the server, hangs a call, or shows its words to the peer."""

    def raise_it():
        error = RAISED[what]()
        raise error

    def sync(arguments):
        raise_it()

    async def tool(arguments):
        raise_it()

    async def layer(next):
        if place == "after next":
            await next()

        if next.call.target_name == "bad":
            raise_it()

        return await next()

    desk = Desk(*([layer] if place in {"layer", "after next"} else []))
    handlers = {"async tool": tool, "thread": sync, "event loop": sync}
    handler = handlers.get(place, desk.echo)
    desk.server.add_tool(Tool("bad", handler, blocking=place == "thread"))
    async with desk.server:
        for version in (MODERN, LEGACY):
            peer = await judged(desk.server, version)
            reply = await peer.reply(peer.message("tools/call", {"name": "bad"}))
            assert b"Internal error" in reply.body
            assert SECRET.encode() not in reply.body
            message = orjson.loads(reply.body)
            assert message.get("error") or message["result"]["isError"]
            assert text_of(await peer.ask(*call_of("echo", text="alive"))) == "alive"
            assert peer.connection.in_flight == {}


@pytest.mark.parametrize("garbage", [None, "text", 5, {}, [], object(), ToolResult, Exception()])
async def test_a_layer_that_returns_no_result_is_a_crash(judged, caplog, garbage):
    """Whatever a layer gives that is no `Result` is answered as an internal error."""

    class Garbage(Middleware):
        methods = EVERY_REQUEST

        async def __call__(self, next):
            return garbage if next.call.method != "initialize" else await next()

    desk = Desk(Garbage())
    async with desk.server:
        peer = await judged(desk.server, LEGACY)
        answer = await peer.ask(*call_of("echo"))
        assert answer["result"]["isError"] is True
        assert text_of(answer).startswith("Internal error (correlation id ")
        answer = await peer.ask("tools/list")
        assert answer["error"]["code"] == -32603
        correlation_id = answer["error"]["data"]["correlationId"]

    assert correlation_id in caplog.text
    assert "no Result" in caplog.text


@pytest.mark.parametrize(
    "content", [[5], [None], [object()], "a\ud800", [{"type": "text"}], None, [Exception()]]
)
async def test_content_that_is_none_is_an_error_result(judged, content):
    """A result made of anything but blocks never reaches the wire."""
    desk = Desk()

    async def garbage(arguments):
        return ToolResult(content)

    desk.server.add_tool(Tool("garbage", garbage))
    async with desk.server:
        peer = await judged(desk.server)
        answer = await peer.ask("tools/call", {"name": "garbage"})
        assert answer["result"]["isError"] is True
        assert text_of(await peer.ask(*call_of("echo", text="alive"))) == "alive"


# When even the way of failing fails.


class BrokenIds(Server):
    """A server whose override fails."""

    def new_correlation_id(self):
        raise OSError(SECRET)


@pytest.mark.parametrize("error", [ValueError(SECRET), ToolError("words"), Denied("no")])
async def test_a_broken_override_does_not_cost_the_answer(judged, capsys, error):
    """Without a correlation id the peer gets a bare internal error, and stderr a line."""
    server = BrokenIds("s")

    async def bad(arguments):
        raise error

    server.add_tool(Tool("bad", bad))
    async with server:
        peer = await judged(server)
        answer = await peer.ask("tools/call", {"name": "bad"})
        assert answer["error"] == {"code": -32603, "message": "Internal error"}
        assert peer.connection.in_flight == {}

    assert "tools/call failed, and reporting it raised OSError" in capsys.readouterr().err


async def test_a_refusal_before_the_chain_survives_a_broken_override(judged, capsys):
    """The bound on calls is answered even where its refusal cannot be put together."""
    server = BrokenIds("s")
    async with server:
        peer = await judged(server)
        await server.drain(0)
        answer = await peer.ask("server/discover")

    assert answer["error"]["code"] == -32603
    assert "OSError" in capsys.readouterr().err


class BrokenHandler(logging.Handler):
    """A log handler that raises out of logging."""

    def handle(self, record):
        raise SystemExit(SECRET)


async def test_a_broken_log_does_not_cost_the_answer(judged, capsys, monkeypatch):
    """An observer never fails a call: the answer is the one that a working log would leave."""
    desk = Desk()

    async def bad(arguments):
        raise ValueError(SECRET)

    desk.server.add_tool(Tool("bad", bad))
    monkeypatch.setattr(logging.getLogger("stanchion.kernel"), "handlers", [BrokenHandler()])
    async with desk.server:
        peer = await judged(desk.server)
        answer = await peer.ask("tools/call", {"name": "bad"})

    assert text_of(answer).startswith("Internal error (correlation id ")
    assert "reporting it raised SystemExit" in capsys.readouterr().err


async def test_meta_without_a_json_form_is_an_error_result(judged, caplog):
    """What a tool puts into `_meta` cannot make its call unanswerable."""
    desk = Desk()

    async def bad(arguments, call):
        call.set_meta("held", object())
        return "fine"

    desk.server.add_tool(Tool("bad", bad))
    async with desk.server:
        peer = await judged(desk.server)
        answer = await peer.ask("tools/call", {"name": "bad"})

    assert answer["result"]["isError"] is True
    assert text_of(answer) == (
        "The result cannot be sent: /_meta/held: is of type object, which JSON has no form for"
    )
    assert "cannot be sent" in caplog.text


async def test_a_name_cannot_write_lines_into_the_log(judged, caplog):
    """The peer's name is logged escaped and cut, so it cannot forge or flood the log."""

    async def crash(next):
        raise ValueError("layer broke")

    server = Desk(crash).server
    async with server:
        peer = await judged(server)
        await peer.ask("tools/call", {"name": "x\nERROR forged " + "y" * 100_000})

    (record,) = caplog.records
    assert "\n" not in record.getMessage()
    assert len(record.getMessage()) < 300


# Odd messages.


@pytest.mark.parametrize("version", VERSIONS)
async def test_odd_params_are_answered_and_the_connection_lives_on(judged, version):
    """Each wrong shape gets its error of the tables, with the id it came under."""
    desk = Desk()
    async with desk.server:
        peer = await judged(desk.server, version)
        call = peer.message(*call_of("echo", text="x"))
        odd = {
            -32602: [
                call | {"params": call["params"] | {"name": 5}},
                call | {"params": call["params"] | {"arguments": []}},
                call | {"params": call["params"] | {"_meta": 5}},
                call | {"params": call["params"] | {"name": "nobody"}},
                call | {"params": {"_meta": call["params"].get("_meta", {})}},
            ],
            -32600: [
                call | {"params": []},
                call | {"params": "x"},
                call | {"jsonrpc": "1.0"},
                call | {"method": None},
                call | {"method": 5},
            ],
            -32601: [call | {"method": "y" * 1_000_000}, call | {"method": "resources/list"}],
        }
        for code, messages in odd.items():
            for message in messages:
                # A modern peer that leaves out `_meta` is told about that first.
                answer = await peer.send(message)
                assert answer["error"]["code"] == code
                assert answer["id"] == call["id"]
                assert len(orjson.dumps(answer)) < 1000

        assert text_of(await peer.send(call)) == "x"


@pytest.mark.parametrize("version", VERSIONS)
async def test_null_arguments_are_no_arguments(judged, version):
    """Clients that write every field send null for what they leave out."""
    desk = Desk()
    async with desk.server:
        peer = await judged(desk.server, version)
        for params in ({"name": "echo"}, {"name": "echo", "arguments": None}):
            assert text_of(await peer.ask("tools/call", params)) == ""

        assert "tools" in (await peer.ask("tools/list", {"cursor": None}))["result"]


@pytest.mark.parametrize("client", [None, {}, {"name": 5}, {"name": ["x"], "version": {}}])
async def test_what_a_client_says_of_itself_cannot_hurt(judged, client):
    """Client info is for display; an odd one is kept as it came and shown safely."""
    server, seen = Server("s"), []

    async def look(arguments, call):
        seen.append((call.peer.client, repr(call.peer)))

    server.add_tool(Tool("look", look))
    async with server:
        peer = await judged(server)
        meta = {"io.modelcontextprotocol/clientInfo": client}
        await peer.ask("tools/call", {"name": "look"}, meta=meta)

    assert seen[0][0] == (client or {})
    assert "over memory, 2026-07-28" in seen[0][1]


@pytest.mark.parametrize("frame", [b"", b"{", b"\xff", b"[" * 10_000, b"null", b"5", b'"x"'])
async def test_a_broken_frame_is_answered_with_a_null_id(judged, frame):
    """Nothing can be said of the id, so it is null; over HTTP the status is 400."""
    desk = Desk()
    async with desk.server:
        peer = await judged(desk.server)
        reply = await peer.reply(frame)
        assert reply.status == 400
        assert peer.judge(reply, frame)["id"] is None
        assert text_of(await peer.ask(*call_of("echo", text="on"))) == "on"


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": "x", "error": {"code": 1, "message": "?"}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/unknown", "params": {"_meta": 5}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled"},
        {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "echo"}},
    ],
)
async def test_what_asks_nothing_is_not_answered(judged, message):
    """Responses and notifications, known or not, are met with silence."""
    desk = Desk()
    async with desk.server:
        for version in (LEGACY, MODERN):
            assert await (await judged(desk.server, version)).reply(message) is NO_REPLY


@pytest.mark.parametrize("version", LEGACY_VERSIONS)
async def test_a_call_knows_who_asked(judged, version):
    """A legacy call's peer is what the handshake said, a modern one's what its envelope says."""
    server, calls = Server("s"), []

    async def look(arguments, call):
        calls.append(call)

    server.add_tool(Tool("look", look))
    async with server:
        legacy, modern = await judged(server, version), await judged(server)
        await legacy.ask("tools/call", {"name": "look", "arguments": {"a": 1}}, id="one")
        await modern.ask("tools/call", {"name": "look"}, meta={"x.y/z": 1})

    first, second = calls
    assert isinstance(first, Call)
    assert (first.id, first.arguments, first.peer.version) == ("one", {"a": 1}, version)
    assert first.peer.client == {"name": "judge", "version": "1"}
    assert first.peer is legacy.connection.peer
    assert first.target.name == first.target_name == "look"
    assert second.peer.version == MODERN
    assert second.meta["x.y/z"] == 1
    assert modern.connection.peer is None


async def test_what_was_registered_decides_which_methods_exist(judged):
    """The first tool added while serving makes the tools' methods exist, the last ends that."""
    server = Server("s")
    async with server:
        peer = await judged(server)
        assert (await peer.ask("tools/list"))["error"]["code"] == -32601
        assert (await peer.ask(*call_of("late")))["error"]["code"] == -32601
        server.add_tool(Tool("late", lambda arguments: "here", blocking=False))
        assert text_of(await peer.ask(*call_of("late"))) == "here"
        server.remove_tool("late")
        assert (await peer.ask(*call_of("late")))["error"]["code"] == -32601
