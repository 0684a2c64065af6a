"""The answer to one POST: JSON or a stream, and what happens when either end gives up."""

from __future__ import annotations

import math

import anyio
import anyio.lowlevel
import pytest

from stanchion import Connection, Denied, Reply, Server
from stanchion_transports.http.exchange import Exchange, encode_headers

from .peer import (
    body_of,
    event_of,
    legacy_call,
    modern,
    serving,
    tool_call,
)

MEBIBYTE = 1 << 20


@pytest.fixture(params=["h11", "httptools"])
def parser(request):
    """Both of uvicorn's parsers."""
    return request.param


async def until(condition):
    """Wait, without a clock, until *condition* holds."""
    while not condition():
        await anyio.lowlevel.checkpoint()


async def test_a_call_without_notifications_is_answered_as_json(desk, parser):
    """One JSON object with its length, though the client could read a stream."""
    async with serving(desk.server, parser=parser) as connect, connect() as wire:
        answer = await wire.ask(*tool_call("echo", progress="t", text="x"))
        assert answer.status == 200
        assert answer.headers["content-type"] == "application/json"
        assert int(answer.headers["content-length"]) == len(answer.body)
        assert answer.text == "x"


@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize("token", ["t", 0])
async def test_notifications_make_it_a_stream(desk, parser, era, token):
    """They come in order with the client's own token, the answer comes last, and it ends."""
    async with serving(desk.server, parser=parser) as connect, connect() as wire:
        if era == "modern":
            answer = await wire.ask(*tool_call("steps", id="s", progress=token, count=5))
        else:
            session = await wire.start_session()
            answer = await wire.ask(session, legacy_call("steps", id="s", progress=token, count=5))

        *notifications, last = answer.events
        assert answer.status == 200
        assert answer.headers["content-type"] == "text/event-stream"
        assert answer.headers["x-accel-buffering"] == "no"
        assert "no-cache" in answer.headers["cache-control"]
        assert [each["params"]["progress"] for each in notifications] == [1, 2, 3, 4, 5]
        assert {each["params"]["progressToken"] for each in notifications} == {token}
        assert last["id"] == "s"
        assert answer.text == "done"
        assert len(answer.ids) == (0 if era == "modern" else 7)
        assert (await wire.ask(*tool_call("echo", text="next"))).text == "next"


async def test_without_a_token_there_is_no_stream(desk, parser):
    """Progress that nobody asked for is not sent."""
    async with serving(desk.server, parser=parser) as connect, connect() as wire:
        answer = await wire.ask(*tool_call("steps", count=5))
        assert answer.headers["content-type"] == "application/json"
        assert answer.text == "done"


async def test_the_first_notification_is_sent_at_once(desk, parser):
    """The client reads it while the call still runs."""
    async with serving(desk.server, parser=parser) as connect, connect() as wire:
        await wire.send(*tool_call("hold", progress="t", told=True))
        assert (await wire.head()).headers["content-type"] == "text/event-stream"
        assert event_of(await wire.chunk())["method"] == "notifications/progress"
        desk.release.set()
        assert event_of(await wire.chunk())["id"] == 1
        assert await wire.chunk() == b""


async def test_an_error_before_the_first_event_keeps_its_status():
    """A layer that refuses decides the HTTP status and fields, also of a call with a token."""

    async def refuse(next):
        raise Denied("scope missing", challenge='Bearer scope="x"')

    server = Server("refusing", "1", middleware=[refuse])
    server.tool(name="echo")(lambda: "x")
    async with serving(server) as connect, connect() as wire:
        answer = await wire.ask(*tool_call("echo", progress="t"))
        assert (answer.status, answer.error) == (403, 403)
        assert answer.headers["www-authenticate"] == 'Bearer scope="x"'
        assert (await wire.ask(*modern("server/discover"))).status == 200


async def test_an_error_after_the_first_event_ends_the_stream(desk):
    """Its status is gone by then, and the answer is the last event all the same."""
    async with serving(desk.server) as connect, connect() as wire:
        answer = await wire.ask(*tool_call("late", progress="t"))
        assert answer.status == 200
        assert answer.events[-1]["result"]["isError"] is True
        assert answer.text == "too late for a status"


@pytest.mark.parametrize(
    ("era", "told"),
    [("modern", False), ("modern", True), ("legacy", False)],
    ids=["modern-json", "modern-stream", "legacy-json"],
)
async def test_a_client_that_goes_away_cancels_its_call(desk, parser, told, era):
    """Unless it can come back, as where a legacy stream was opened; the next call is served."""
    async with serving(desk.server, parser=parser) as connect:
        async with connect() as wire:
            if era == "modern":
                await wire.send(*tool_call("hold", progress="t", told=told))
            else:
                session = await wire.start_session()
                await wire.send(session, legacy_call("hold", progress="t", told=told))

            await desk.started.wait()
            if told:
                assert (await wire.head()).status == 200

        await until(lambda: desk.cancelled)
        async with connect() as wire:
            assert (await wire.ask(*tool_call("echo", text="next"))).text == "next"

    assert desk.cancelled == ["hold"]


async def test_a_client_that_goes_away_cancels_its_batch(desk):
    """All calls of the batch, and those of nobody else."""
    async with serving(desk.server) as connect, connect() as wire, connect() as other:
        session = await wire.start_session("2025-03-26")
        foreign = await other.start_session()
        await other.send(foreign, legacy_call("hold", id="a", name="foreign"))
        await desk.started.wait()
        calls = [legacy_call("hold", id=id, name=id) for id in ["a", "b"]]
        notification = body_of(method="notifications/initialized")
        await wire.send(session, b"[" + b",".join([*calls, notification, b"7"]) + b"]")
        await until(lambda: len(desk.server.kernel.running) == 3)
        await wire.close()
        await until(lambda: len(desk.cancelled) == 2)
        desk.release.set()
        assert (await other.answer()).text == "foreign released"

    assert sorted(desk.cancelled) == ["a", "b"]


async def test_a_slow_reader_gets_five_mebibytes_and_blocks_nobody(desk, parser):
    """While one client reads a large result in small bites, another is served."""
    async with (
        serving(desk.server, parser=parser) as connect,
        connect() as slow,
        connect() as other,
    ):
        await slow.send(*tool_call("big", size=5 * MEBIBYTE))
        assert (await other.ask(*tool_call("echo", text="meanwhile"))).text == "meanwhile"
        head = b""
        while b"\r\n\r\n" not in head:
            head += await slow.stream.receive(16)

        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        got = len(head.partition(b"\r\n\r\n")[2])
        for _ in range(200):
            got += len(await slow.stream.receive(512))

        assert (await other.ask(*tool_call("echo", text="still"))).text == "still"
        while got < length:
            got += len(await slow.stream.receive(65536))

        assert got == length > 5 * MEBIBYTE


async def test_a_silent_call_gets_signs_of_life(desk):
    """After `keep_alive` seconds without anything a comment commits the stream."""
    async with serving(desk.server, keep_alive=0.01) as connect, connect() as wire:
        await wire.send(*tool_call("hold"))
        assert (await wire.head()).headers["content-type"] == "text/event-stream"
        assert event_of(await wire.chunk()) is None
        assert event_of(await wire.chunk()) is None
        desk.release.set()
        rest = b""
        while chunk := await wire.chunk():
            rest += chunk

        last = rest.split(b"\n\n")[-2]
        assert event_of(last)["id"] == 1


class Asgi:
    """The two ends of an ASGI request, whose client reads only when it is told to."""

    def __init__(self):
        self.sent = []
        self.gone = anyio.Event()
        self.writable = anyio.Event()
        self.writable.set()

    async def send(self, message):
        """Take a message once the client reads, as uvicorn does."""
        await self.writable.wait()
        self.sent.append(message)

    async def receive(self):
        """Tell that the client has gone away, once it has."""
        await self.gone.wait()
        return {"type": "http.disconnect"}

    @property
    def body(self):
        """Everything that was sent of the body."""
        return b"".join(each.get("body", b"") for each in self.sent)


@pytest.fixture
async def asgi():
    """Made on the event loop, as its events want."""
    return Asgi()


def exchange_of(asgi, silence=math.inf):
    """Make an exchange that answers to *asgi*."""
    return Exchange(asgi.receive, asgi.send, silence, Connection("http"))


REPLY = Reply(b'{"id":1}', 200)


async def test_notifications_after_the_answer_are_dropped(asgi):
    """Nothing follows the answer, whether it was JSON or ended a stream."""
    exchange = exchange_of(asgi)
    await exchange.finish(REPLY)
    await exchange.notify(b"{}")
    await exchange.keep_alive()
    assert asgi.body == REPLY.body
    streaming = exchange_of(asgi)
    await streaming.notify(b"{}")
    await streaming.finish(REPLY)
    count = len(asgi.sent)
    await streaming.notify(b"{}")
    assert len(asgi.sent) == count
    assert asgi.sent[-1]["more_body"] is False


async def test_an_answer_in_pieces_is_sent_in_pieces(asgi):
    """Nothing is joined; the length is that of all pieces, and only the last ends the answer."""
    await exchange_of(asgi).finish(Reply((b'{"id":', b"1", b"}")))
    assert dict(asgi.sent[0]["headers"])[b"content-length"] == b"8"
    assert asgi.body == b'{"id":1}'
    assert [event.get("more_body", False) for event in asgi.sent[1:]] == [True, True, False]


async def test_a_cancelled_request_ends_without_a_response(asgi):
    """An empty stream, committed or not, as no response may follow a cancellation."""
    exchange = exchange_of(asgi)
    await exchange.finish(Reply(None, 202))
    assert asgi.sent[0]["status"] == 200
    assert dict(asgi.sent[0]["headers"])[b"content-type"] == b"text/event-stream"
    assert asgi.body == b""
    assert asgi.sent[-1]["more_body"] is False


async def test_a_batch_that_nothing_answers_is_accepted(asgi):
    """HTTP 202 for a batch of notifications; a batch that streamed ends its stream."""
    await exchange_of(asgi).finish(Reply(None, 202), may_be_empty=True)
    assert asgi.sent[0]["status"] == 202
    streaming = exchange_of(asgi)
    await streaming.notify(b"{}")
    await streaming.finish(Reply(None, 202), may_be_empty=True)
    assert asgi.sent[-1] == {"type": "http.response.body", "body": b"", "more_body": False}


async def test_a_call_cancelled_before_its_stream_began_still_answers_well(asgi):
    """A first event that waited for the client in vain has not begun the stream."""
    exchange = exchange_of(asgi)
    asgi.writable = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(exchange.notify, b"{}")
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()

    assert asgi.sent == []
    asgi.writable.set()
    await exchange.finish(REPLY)
    assert [each["type"] for each in asgi.sent] == ["http.response.start", "http.response.body"]
    assert event_of(asgi.body) == {"id": 1}


async def test_a_stream_that_waits_for_its_reader_is_not_silent(asgi):
    """Signs of life do not pile up behind a client that does not read."""
    exchange = exchange_of(asgi, silence=10)
    assert not exchange.is_silent(0)
    assert not exchange.is_silent(9)
    assert exchange.is_silent(10)
    asgi.writable = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(exchange.notify, b"{}")
        await anyio.wait_all_tasks_blocked()
        assert not exchange.is_silent(1000)
        asgi.writable.set()

    await exchange.finish(REPLY)
    assert not exchange.is_silent(math.inf)


async def test_events_wait_for_each_other(asgi):
    """Two notifications and a sign of life at once are three whole events in order."""
    exchange = exchange_of(asgi)
    asgi.writable = anyio.Event()
    async with anyio.create_task_group() as group:
        for number in range(3):
            group.start_soon(exchange.notify, b"%d" % number)
            await anyio.wait_all_tasks_blocked()

        group.start_soon(exchange.keep_alive)
        await anyio.wait_all_tasks_blocked()
        asgi.writable.set()

    assert [each["type"] for each in asgi.sent].count("http.response.start") == 1
    blocks = asgi.body.split(b"\n\n")[:-1]
    assert list(map(event_of, blocks)) == [0, 1, 2, None]


async def test_a_client_that_goes_away_late_cancels_nothing(asgi):
    """Once the answer is out, the request's id may belong to another call already."""
    exchange = exchange_of(asgi)
    exchange.connection.in_flight[1] = object()
    await exchange.finish(REPLY)
    asgi.gone.set()
    await exchange.watch_disconnect()


def test_fields_hold_what_fields_can_hold():
    """A line break or a character beyond Latin-1 costs neither the field nor the answer."""
    fields = encode_headers({"WWW-Authenticate": "a\r\nb: c\x00\u20ac\xe9\t"})
    assert fields == [(b"www-authenticate", b"a??b: c??\xe9\t")]


async def test_stopped_calls_are_answered(desk):
    """A call that the draining server stops gets the refusal as its answer, in either form."""
    async with serving(desk.server) as connect, connect() as one, connect() as two:
        await one.send(*tool_call("hold", id=1))
        await two.send(*tool_call("hold", id=1, progress="t", told=True))
        await until(lambda: len(desk.server.kernel.running) == 2)
        assert (await two.head()).status == 200
        await two.chunk()
        await desk.server.drain(0)
        answer = await one.answer()
        assert (answer.status, answer.error) == (503, 503)
        assert answer.headers["retry-after"] == "1"
        assert event_of(await two.chunk())["error"]["code"] == 503
        assert await two.chunk() == b""
        assert (await one.ask(*tool_call("echo", text="x"))).status == 503
