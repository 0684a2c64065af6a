"""Every request of a known method ends once for those who observe, as its peer was told."""

from __future__ import annotations

import logging

import anyio
import orjson
import pytest

from stanchion import (
    EVERY_REQUEST,
    Connection,
    Denied,
    ElicitUrl,
    Middleware,
    Server,
    ToolError,
    ToolResult,
    Unavailable,
    UrlElicitationRequired,
)
from stanchion_testing import PeerError, connect
from stanchion_transports.memory import open_memory

LEGACY, MODERN = "2025-11-25", "2026-07-28"


class Watch(Middleware):
    """Notes how every call ends."""

    name = "watch"
    methods = EVERY_REQUEST

    def __init__(self):
        self.ends = []

    def ended(self, call, ending):
        self.ends.append((call.method, call.target_name, ending.outcome.value))
        self.last, self.ending = call, ending


class Hold(Watch):
    """Lets an answer out unless it is told not to."""

    refusal = None

    async def confirm(self, call, ending):
        await anyio.lowlevel.checkpoint()
        assert ending is self.ending
        if self.refusal is not None:
            raise self.refusal


def desk(*layers, **options):
    """Give a server with tools that end in every way."""
    server = Server("desk", middleware=layers, **options)

    @server.tool
    async def fine(text: str = "") -> str:
        return text

    @server.tool
    async def fails() -> str:
        raise ToolError("no such order")

    @server.tool
    async def breaks() -> str:
        raise SystemExit(3)

    @server.tool
    async def denies() -> str:
        raise Denied("not you", policy="desk")

    @server.tool
    async def waits() -> str:
        await anyio.sleep_forever()
        return ""

    @server.tool
    async def unsendable() -> ToolResult:
        return ToolResult("", structured={"at": object()})

    return server


@pytest.mark.parametrize("version", [LEGACY, MODERN])
@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("fine", "ok"),
        ("fails", "tool_error"),
        ("breaks", "crashed"),
        ("denies", "denied"),
        ("unsendable", "crashed"),
        ("nothing", "invalid"),
    ],
)
async def test_a_call_ends_once_with_what_its_peer_is_told(judged, version, name, outcome):
    """Also where the result turns out not to be sendable, once the chain has let it pass."""
    watch = Watch()
    async with desk(watch) as server:
        peer = await judged(server, version)
        watch.ends.clear()
        reply = await peer.reply(peer.message("tools/call", {"name": name}))

    assert watch.ends == [("tools/call", name, outcome)]
    assert watch.ending.reply_size == len(reply.body)
    assert 0 < watch.ending.duration < 60
    assert (watch.ending.error is None) == (outcome == "ok")
    assert (watch.ending.result is None) == (outcome != "ok")


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {}),
        ("tools/call", {"name": ["x"]}),
        ("tools/call", {"name": "fine", "arguments": "text"}),
        ("prompts/get", {"name": "none is served"}),
        ("completion/complete", {"ref": 3}),
    ],
)
@pytest.mark.parametrize("version", [LEGACY, MODERN])
async def test_what_the_engine_turns_away_ends_too(judged, version, method, params):
    """Malformed parameters and features that are not served do not pass the chain."""
    watch = Watch()
    async with desk(watch) as server:
        peer = await judged(server, version)
        watch.ends.clear()
        assert "error" in await peer.ask(method, params)

    name = params.get("name")
    assert watch.ends == [(method, name if isinstance(name, str) else None, "invalid")]
    assert watch.last.peer.client.get("name") == ("judge" if version == LEGACY else None)


@pytest.mark.parametrize("meta", ["x", {"io.modelcontextprotocol/protocolVersion": 3}])
async def test_a_malformed_envelope_ends_too(judged, meta):
    """Whatever stands where `_meta` belongs."""
    watch = Watch()
    async with desk(watch) as server:
        peer = await judged(server)
        message = peer.message("tools/call", {"name": "fine"})
        message["params"]["_meta"] = meta
        await peer.reply(message)

    assert watch.ends == [("tools/call", "fine", "invalid")]


async def test_a_method_that_nobody_knows_has_no_ending(judged):
    """Names that callers make up do not grow what observers keep."""
    watch = Watch()
    async with desk(watch) as server:
        peer = await judged(server)
        await peer.ask("tools/made_up")

    assert watch.ends == []


async def test_a_ping_ends(judged):
    """It passes no layer, and observers are told."""
    watch = Watch()
    async with desk(watch) as server:
        peer = await judged(server, LEGACY)
        await peer.ask("ping")

    assert watch.ends == [("initialize", None, "ok"), ("ping", None, "ok")]


async def test_a_cancelled_call_ends_as_cancelled(judged):
    """It is not answered, so no size is told."""
    watch = Watch()
    async with desk(watch) as server, anyio.create_task_group() as group:
        peer = await judged(server)
        group.start_soon(peer.ask, "tools/call", {"name": "waits"})
        await anyio.wait_all_tasks_blocked()
        await peer.tell("notifications/cancelled", {"requestId": 1})

    assert watch.ends == [("tools/call", "waits", "cancelled")]
    assert watch.ending.reply_size == 0


async def test_a_call_whose_transport_goes_away_ends_as_cancelled(judged):
    """The task that runs it is cancelled from outside, and the ending is told all the same."""
    watch = Hold()
    async with desk(watch) as server:
        peer = await judged(server)
        async with anyio.create_task_group() as group:
            group.start_soon(peer.ask, "tools/call", {"name": "waits"})
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()

    assert watch.ends == [("tools/call", "waits", "cancelled")]


async def test_a_call_that_a_drain_stops_ends_as_it_is_answered(judged):
    """Its own layers see a cancellation; the peer is refused."""
    watch = Watch()
    async with desk(watch) as server, anyio.create_task_group() as group:
        peer = await judged(server)
        group.start_soon(peer.ask, "tools/call", {"name": "waits"})
        await anyio.wait_all_tasks_blocked()
        await server.drain(0)
        await peer.ask("tools/call", {"name": "fine"})

    late, stopped = sorted(watch.ends)
    assert late == ("tools/call", "fine", "unavailable")
    assert stopped == ("tools/call", "waits", "unavailable")


async def test_a_server_that_is_full_ends_what_it_refuses(judged):
    """So does one that is asked twice under one id; the refused call has its target."""
    watch = Watch()
    async with desk(watch, max_calls=1) as server, anyio.create_task_group() as group:
        peer = await judged(server)
        group.start_soon(peer.ask, "tools/call", {"name": "waits"})
        await anyio.wait_all_tasks_blocked()
        await peer.ask("tools/call", {"name": "fine"})
        assert watch.last.target.key == "fine"
        await peer.ask("tools/call", {"name": "fine"}, id=1)
        group.cancel_scope.cancel()

    assert watch.ends == [
        ("tools/call", "fine", "unavailable"),
        ("tools/call", "fine", "invalid"),
        ("tools/call", "waits", "cancelled"),
    ]


async def test_what_a_layer_outside_makes_of_it_is_the_ending(judged):
    """The observer is told of what the peer is, and not of what it saw pass."""
    watch = Watch()

    async def outside(next):
        await next()
        raise Denied("after all", policy="outside")

    async with desk(outside, watch) as server:
        peer = await judged(server)
        await peer.ask("tools/call", {"name": "fine"})

    assert watch.ends == [("tools/call", "fine", "denied")]


async def test_a_layer_is_told_of_its_own_methods_and_targets(judged):
    """One for tool calls hears of no list, and none of a target that it declines."""

    class Narrow(Watch):
        methods = frozenset({"tools/call"})

        def applies(self, target):
            return target is None or target.key != "fine"

    watch = Narrow()
    async with desk(watch) as server:
        peer = await judged(server)
        await peer.ask("tools/list")
        await peer.ask("tools/call", {"name": "fine"})
        await peer.ask("tools/call", {"name": "fails"})

    assert watch.ends == [("tools/call", "fails", "tool_error")]


async def test_an_observer_that_fails_costs_nothing(judged, caplog):
    """Neither the call nor the other observers; the log names it."""

    class Broken(Middleware):
        name = "broken"

        def ended(self, call, ending):
            raise OSError("disk full")

    outer, inner = Watch(), Watch()
    async with desk(outer, Broken(), inner) as server:
        peer = await judged(server)
        answer = await peer.ask("tools/call", {"name": "fine", "arguments": {"text": "x"}})

    assert answer["result"]["content"][0]["text"] == "x"
    assert outer.ends == inner.ends == [("tools/call", "fine", "ok")]
    (record,) = [each for each in caplog.records if each.name == "stanchion.ending"]
    assert (record.levelno, record.getMessage()) == (
        logging.ERROR,
        "broken failed to take note of a call",
    )


@pytest.mark.parametrize(
    ("raised", "code"), [(None, None), (Unavailable("no room"), 503), (OSError("disk"), "crash")]
)
async def test_an_answer_can_be_held_back(judged, raised, code):
    """What `confirm` raises is answered in its place, masked where it is no refusal."""
    hold = Hold()
    hold.refusal = raised
    async with desk(hold) as server:
        peer = await judged(server)
        answer = await peer.ask("tools/call", {"name": "fine", "arguments": {"text": "x"}})

    if code == 503:
        assert answer["error"]["code"] == 503
    else:
        assert answer["result"].get("isError", False) == (code == "crash")
        assert "disk" not in str(answer)

    assert hold.ends == [("tools/call", "fine", "ok")]


async def test_a_call_that_waits_to_be_confirmed_can_be_cancelled(judged):
    """The cancellation of its transport passes, and the ending is not told again."""

    class Stuck(Watch):
        async def confirm(self, call, ending):
            await anyio.sleep_forever()

    stuck = Stuck()
    async with desk(stuck) as server:
        peer = await judged(server)
        with anyio.move_on_after(0.01) as scope:
            await peer.ask("tools/call", {"name": "fine"})

    assert scope.cancelled_caught
    assert stuck.ends == [("tools/call", "fine", "ok")]


async def test_a_mounted_server_observes_the_calls_that_reach_it(judged):
    """Under its own names, and once, also where a layer outside tries again."""
    outer, inner = Watch(), Watch()

    async def twice(next):
        await next()
        return await next()

    server = Server("hall", middleware=[outer, twice])
    server.mount(desk(inner), "desk/")
    async with server:
        peer = await judged(server)
        await peer.ask("tools/call", {"name": "desk/fine"})
        await peer.ask("tools/list")

    assert outer.ends == [("tools/call", "desk/fine", "ok"), ("tools/list", None, "ok")]
    assert inner.ends == [("tools/call", "fine", "ok")]
    assert inner.last.target_name == "desk/fine"  # as the peer called it, once all are told


async def test_a_listen_ends_when_its_stream_does(judged):
    """Not when it is let in: it is one call for as long as somebody listens."""
    watch = Watch()
    async with desk(watch) as server:
        peer = await judged(server)
        async with anyio.create_task_group() as group:
            notifications = {"toolsListChanged": True}
            group.start_soon(peer.ask, "subscriptions/listen", {"notifications": notifications})
            await anyio.wait_all_tasks_blocked()
            assert watch.ends == []
            group.cancel_scope.cancel()

    assert watch.ends == [("subscriptions/listen", None, "cancelled")]


async def test_a_ping_before_the_handshake_is_one_of_a_peer_too():
    """Whoever observes need not ask whether there is one."""
    watch = Watch()
    async with desk(watch) as server:
        frame = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        await server.handle(frame, Connection("stdio"))

    assert (watch.last.peer.transport, watch.last.peer.version) == ("stdio", LEGACY)


@pytest.mark.parametrize("version", [LEGACY, MODERN])
@pytest.mark.parametrize(
    ("method", "params", "refusals", "code"),
    [
        ("tools/call", {"name": "fine"}, "error", None),
        ("tools/call", {"name": "fails"}, "error", None),
        ("tools/call", {"name": "nothing"}, "error", -32602),
        ("tools/call", {"name": "denies"}, "error", 403),
        ("tools/call", {"name": "denies"}, "result", None),
        ("tools/call", {}, "error", -32602),
        ("prompts/get", {"name": "breaks"}, "error", -32603),
        ("prompts/get", {"name": "misfits", "arguments": {"number": "x"}}, "error", -32602),
        ("resources/read", {"uri": "a://b"}, "error", {LEGACY: -32002, MODERN: -32602}),
    ],
)
async def test_an_ending_has_the_error_that_is_answered(
    judged, version, method, params, refusals, code
):
    """Its code and its message, exactly as they are on the wire; None where a result is."""
    watch = Watch()
    server = desk(watch, refusals=refusals)
    server.prompt(name="breaks")(lambda: 1 // 0)

    @server.prompt
    async def misfits(number: int) -> str:
        return f"{number}"

    @server.resource("c://d")
    async def resource() -> str:
        return ""

    async with server:
        peer = await judged(server, version)
        reply = await peer.reply(peer.message(method, params))

    error = orjson.loads(reply.body).get("error", {})
    assert (watch.ending.code, watch.ending.message) == (error.get("code"), error.get("message"))
    assert watch.ending.code == (code[version] if isinstance(code, dict) else code)


class Sessions(Middleware):
    """Notes how sessions end."""

    name = "sessions"

    def __init__(self):
        self.ends = []

    def session_ended(self, ending):
        self.ends.append(ending)


class Fails(Middleware):
    """Cannot take note of a session."""

    name = "fails"

    def session_ended(self, ending):
        raise OSError("gone")


@pytest.mark.parametrize(("era", "ends"), [("legacy", 1), ("modern", 0)])
async def test_a_session_on_a_stream_ends_with_it(era, ends, caplog):
    """Told once to each layer; one that fails is logged, and a modern peer has no session."""
    sessions = Sessions()
    async with connect(desk(Fails(), sessions), era=era) as peer:
        await peer.call_tool("fine")
        assert sessions.ends == []

    assert len(sessions.ends) == ends
    assert len(caplog.records) == ends
    for ending in sessions.ends:
        assert (ending.transport, ending.version) == ("memory", LEGACY)
        assert 0 < ending.duration < 60


async def test_a_stream_without_a_handshake_was_no_session():
    """Nothing is told of it."""
    sessions = Sessions()
    async with desk(sessions) as server, open_memory(server) as stream:
        await stream.send(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
        await stream.receive()

    assert sessions.ends == []


@pytest.mark.parametrize(
    ("era", "outcome", "code"), [("legacy", "invalid", -32042), ("modern", "input_required", None)]
)
async def test_pages_to_open_first_end_a_call_as_its_peer_is_told(era, outcome, code):
    """An error for a legacy peer, and a round of questions for a modern one."""
    watch = Watch()
    server = desk(watch)

    @server.tool
    async def opens() -> str:
        raise UrlElicitationRequired(ElicitUrl("Open it", "https://example.com/", id="1"))

    async with connect(server, era=era, capabilities={"elicitation": {"url": {}}}) as peer:
        try:
            await peer.request("tools/call", {"name": "opens"})
        except PeerError as error:
            assert error.code == code  # noqa: PT017 # only one of the eras raises

    assert (watch.ending.outcome.value, watch.ending.code) == (outcome, code)
