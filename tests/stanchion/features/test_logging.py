"""Log messages to the client, in both eras: who is sent what, and when no more."""

from __future__ import annotations

import anyio
import orjson
import pytest

from stanchion import EVERY_REQUEST, LEGACY_VERSIONS, Call, Middleware, Peer, Server
from stanchion_testing import connect, make_call

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
META_LEVEL = "io.modelcontextprotocol/logLevel"
MODERN = "2026-07-28"


def talkative(**options):
    """A server whose tool `talk` logs once at every level."""
    server = Server("s", **options)

    @server.tool
    async def talk(call: Call) -> str:
        for level in LEVELS:
            await call.log(level, {"said": level}, "voice")

        return "said"

    return server


def levels_of(peer):
    """Give the levels of the log messages that came, in order, and forget them."""
    said = [each["params"] for each in peer.notifications if is_log(each)]
    peer.notifications.clear()
    return tuple(params["level"] for params in said)


def is_log(message):
    return message["method"] == "notifications/message"


@pytest.mark.parametrize("version", LEGACY_VERSIONS)
async def test_a_legacy_peer_is_sent_what_its_level_lets_through(judged, version):
    """`info` and above before it sets a level, and then that level and above."""
    async with talkative() as server:
        peer = await judged(server, version)
        await peer.ask("tools/call", {"name": "talk"})
        assert levels_of(peer) == LEVELS[1:]
        for position, level in enumerate(LEVELS):
            assert (await peer.ask("logging/setLevel", {"level": level}))["result"] == {}
            await peer.ask("tools/call", {"name": "talk"})
            assert levels_of(peer) == LEVELS[position:]


async def test_a_modern_peer_is_sent_what_each_request_asks_for(judged):
    """Nothing without a level in the request, and no memory of the level of another request."""
    async with talkative() as server:
        peer = await judged(server)
        for position, level in enumerate(LEVELS):
            await peer.ask("tools/call", {"name": "talk"}, meta={META_LEVEL: level})
            assert levels_of(peer) == LEVELS[position:]
            await peer.ask("tools/call", {"name": "talk"})
            assert levels_of(peer) == ()


async def test_a_modern_request_with_an_unknown_level_is_refused(judged):
    """The level in `_meta` is checked before the call runs."""
    async with talkative() as server:
        peer = await judged(server)
        answer = await peer.ask("tools/call", {"name": "talk"}, meta={META_LEVEL: "loud"})

    assert answer["error"]["code"] == -32602
    assert peer.notifications == []


@pytest.mark.parametrize("params", [{"level": "loud"}, {"level": "INFO"}, {"level": 3}, {}])
async def test_an_invalid_level_is_refused_and_the_one_before_stays(judged, params):
    """The answer is -32602, and the words name the levels that there are."""
    async with talkative() as server:
        peer = await judged(server, "2025-11-25")
        await peer.ask("logging/setLevel", {"level": "alert"})
        assert (await peer.ask("logging/setLevel", params))["error"]["code"] == -32602
        await peer.ask("tools/call", {"name": "talk"})

    assert levels_of(peer) == ("alert", "emergency")


async def test_set_level_is_gone_in_the_modern_era(judged):
    """A modern peer names its level in each request; the capability is declared all the same."""
    async with talkative() as server:
        peer = await judged(server)
        answer = await peer.ask("logging/setLevel", {"level": "debug"})
        assert answer["error"]["code"] == -32601
        found = (await peer.ask("server/discover"))["result"]
        assert found["capabilities"]["logging"] == {}


async def test_two_peers_do_not_share_a_level(judged):
    """What one connection sets says nothing about another."""
    async with talkative() as server:
        one, other = await judged(server, "2025-11-25"), await judged(server, "2025-11-25")
        await one.ask("logging/setLevel", {"level": "emergency"})
        await other.ask("tools/call", {"name": "talk"})
        assert levels_of(other) == LEVELS[1:]


async def test_a_running_call_heeds_a_level_at_once():
    """A level that is set while a tool runs counts for its next message."""
    server = Server("s")
    may_go_on = anyio.Event()

    @server.tool
    async def work(call: Call) -> str:
        await call.log("info", "before")
        await may_go_on.wait()
        await call.log("info", "after")
        await call.log("error", "at last")
        return "done"

    async with connect(server, era="legacy") as peer:
        id = await peer.start("tools/call", {"name": "work"})
        await anyio.wait_all_tasks_blocked()
        await peer.request("logging/setLevel", {"level": "warning"})
        may_go_on.set()
        await peer.answer(id)
        data = [each["params"]["data"] for each in peer.notifications]

    assert data == ["before", "at last"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_messages_come_before_the_answer_and_none_after(era):
    """A branch that outlives its call, and its call's stream, says nothing any more."""
    server = Server("s")
    kept = []

    @server.tool
    async def leave(call: Call) -> str:
        kept.append(call)
        await call.log("error", "while it runs")
        return "left"

    async with connect(server, era=era) as peer:
        await peer.call_tool("leave", meta={META_LEVEL: "debug"})
        await kept[0].log("error", "too late")
        await peer.call_tool("leave", meta={META_LEVEL: "debug"})
        data = [each["params"]["data"] for each in peer.notifications]

    assert data == ["while it runs", "while it runs"]


async def test_a_message_has_its_level_data_and_logger(judged):
    """`logger` is left out where none is given; data may be any JSON value."""
    server = Server("s")
    values = [None, True, 1.5, "text", [1, {"deep": []}], {"key": "value"}]

    @server.tool
    async def say(call: Call) -> str:
        for value in values:
            await call.log("error", value)

        await call.log("notice", "named", logger="app.db")
        return "said"

    async with server:
        peer = await judged(server, "2025-11-25")
        await peer.ask("tools/call", {"name": "say"})

    *plain, named = [each["params"] for each in peer.notifications]
    assert plain == [{"level": "error", "data": value} for value in values]
    assert named == {"level": "notice", "data": "named", "logger": "app.db"}


def wanting(send):
    """A call whose client wants every message."""
    peer = Peer("memory", MODERN, client={}, capabilities={})
    return Call("tools/call", peer, meta={META_LEVEL: "debug"}, send=send)


class Unreadable:
    """A value whose own code fails."""

    def __str__(self):
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        (ValueError("what failed"), "what failed"),
        ("half \ud800 a pair", "half ? a pair"),
        ({"key": {1}}, "{'key': {1}}"),
        (Unreadable(), "<Unreadable>"),
        (2**70, str(2**70)),
    ],
)
async def test_what_json_has_no_form_for_is_sent_as_text(value, sent):
    """A log message never fails the call that sends it."""
    frames = []

    async def send(frame):
        frames.append(orjson.loads(frame))

    await wanting(send).log("info", value, "lone \ud800")
    (message,) = frames
    assert message["params"] == {"level": "info", "data": sent, "logger": "lone ?"}


async def test_text_for_what_is_no_json_is_bounded():
    """A large value of no JSON form does not become a large message."""
    frames = []

    async def send(frame):
        frames.append(orjson.loads(frame))

    await wanting(send).log("info", {"x" * 50_000: {1}})
    assert len(frames[0]["params"]["data"]) == 10_000


async def test_an_unknown_level_is_the_handlers_mistake():
    """It is found whether or not anybody would have been sent the message."""
    with pytest.raises(ValueError, match="'loud' is no log level"):
        await make_call().log("loud", "x")


async def test_a_layer_may_log_for_any_request(judged):
    """The verb is the call's, so a layer has it too, for lists as for tools."""

    class Loud(Middleware):
        methods = EVERY_REQUEST

        async def __call__(self, next):
            await next.call.log("warning", next.call.method)
            return await next()

    async with talkative(middleware=[Loud()]) as server:
        peer = await judged(server, "2025-11-25")
        peer.notifications.clear()
        await peer.ask("tools/list")
        assert [each["params"]["data"] for each in peer.notifications] == ["tools/list"]
