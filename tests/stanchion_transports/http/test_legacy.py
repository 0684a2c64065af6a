"""Legacy clients: the handshake, sessions, batches, cancellation and DELETE."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from stanchion import Server
from stanchion_transports.http import app

from .peer import (
    ENVELOPE,
    LEGACY,
    MODERN,
    Desk,
    body_of,
    initialize,
    legacy_call,
    serving,
    tool_call,
)

KEY = b"k" * 32
VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]


def cancel(id):
    """Make the body that cancels request *id*."""
    return body_of(method="notifications/cancelled", params={"requestId": id})


async def until(condition):
    """Wait, without a clock, until *condition* holds."""
    while not condition():
        await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_session_from_its_beginning_to_its_end(desk, version):
    """Initialize, use it, end it, and then it is gone."""
    async with serving(desk.server) as connect, connect() as wire:
        answer = await wire.ask({}, initialize(version))
        assert answer.status == 200
        assert answer.json["result"]["protocolVersion"] == version
        token = answer.headers["mcp-session-id"]
        assert all(0x21 <= ord(character) <= 0x7E for character in token)
        session = {"mcp-session-id": token, "mcp-protocol-version": version}
        notified = await wire.ask(session, body_of(method="notifications/initialized"))
        assert (notified.status, notified.body) == (202, b"")
        assert (await wire.ask(session, legacy_call("echo", text="x"))).text == "x"
        ended = await wire.ask(session, method="DELETE")
        assert (ended.status, ended.body) == (204, b"")
        for method, body in [("POST", legacy_call("echo", text="x")), ("DELETE", b"")]:
            gone = await wire.ask(session, body, method=method)
            assert (gone.status, gone.error) == (404, -32600)

        assert (await wire.ask({}, initialize(version))).status == 200


async def test_an_unknown_version_is_negotiated(desk):
    """The handshake answers with our latest legacy version, a modern one being none."""
    async with serving(desk.server) as connect, connect() as wire:
        for asked in ["1999-01-01", MODERN]:
            answer = await wire.ask({}, initialize(asked))
            assert answer.json["result"]["protocolVersion"] == LEGACY


async def test_a_failed_handshake_makes_no_session(desk):
    """An error has no session id."""
    async with serving(desk.server) as connect, connect() as wire:
        bad = body_of(id=1, method="initialize", params={"protocolVersion": LEGACY})
        answer = await wire.ask({}, bad)
        assert answer.error == -32602
        assert "mcp-session-id" not in answer.headers


async def test_every_handshake_makes_a_session_of_its_own(desk):
    """Also where the client names an old one, which it may be rid of or not."""
    async with serving(desk.server) as connect, connect() as wire:
        session = await wire.start_session()
        again = await wire.ask(session, initialize())
        assert again.status == 200
        assert again.headers["mcp-session-id"] != session["mcp-session-id"]


async def test_a_request_without_its_session_is_refused(desk):
    """HTTP 400 for everything but `initialize` and `ping`."""
    async with serving(desk.server) as connect, connect() as wire:
        for body in [
            legacy_call("echo", text="x"),
            body_of(id=1, method="tools/list"),
            body_of(method="notifications/initialized"),
            body_of(id=1, result={}),
            b"[" + legacy_call("echo", text="x") + b"]",
        ]:
            answer = await wire.ask({}, body)
            assert (answer.status, answer.error) == (400, -32600)

        answer = await wire.ask({}, method="DELETE")
        assert (answer.status, answer.error) == (400, -32600)
        assert (await wire.ask({}, body_of(id=1, method="ping"))).json["result"] == {}


async def test_every_bad_session_looks_the_same(desk):
    """Forged, edited, ended or made up: HTTP 404, and nothing tells one from the other."""
    async with serving(desk.server) as connect, connect() as wire:
        session = await wire.start_session()
        ended = await wire.start_session()
        await wire.ask(ended, method="DELETE")
        token = session["mcp-session-id"]
        edited = token[:60] + ("A" if token[60] != "A" else "B") + token[61:]
        answers = []
        for bad in ["made-up", "\xff\xfe", "", edited, ended["mcp-session-id"], "a" * 4000]:
            answer = await wire.ask({"mcp-session-id": bad}, legacy_call("echo", text="x"))
            answers.append((answer.status, answer.body))

        assert set(answers) == {(404, answers[0][1])}
        assert (await wire.ask(session, legacy_call("echo", text="x"))).text == "x"


async def test_an_unsupported_version_header_is_refused(desk):
    """HTTP 400 whatever is sent with it, and what the server speaks."""
    async with serving(desk.server) as connect, connect() as wire:
        session = await wire.start_session()
        bad = session | {"mcp-protocol-version": "1999-01-01"}
        for body in [
            legacy_call("echo", text="x"),
            body_of(method="notifications/initialized"),
            body_of(id=1, result={}),
        ]:
            assert (await wire.ask(bad, body)).status == 400

        answer = await wire.ask(bad, method="DELETE")
        assert (answer.status, answer.error) == (400, -32022)
        assert (await wire.ask(session, legacy_call("echo", text="x"))).text == "x"


async def test_the_version_header_may_be_missing(desk):
    """The session knows its version."""
    async with serving(desk.server) as connect, connect() as wire:
        session = await wire.start_session()
        del session["mcp-protocol-version"]
        assert (await wire.ask(session, legacy_call("echo", text="x"))).text == "x"
        assert (await wire.ask(session, method="DELETE")).status == 204


async def test_legacy_errors_have_their_codes(desk):
    """An unknown method or tool is an error in an answer of HTTP 200."""
    async with serving(desk.server) as connect, connect() as wire:
        session = await wire.start_session()
        for method, code in [("nonsense", -32601), ("server/discover", -32601)]:
            answer = await wire.ask(session, body_of(id=1, method=method))
            assert (answer.status, answer.error) == (200, code)

        answer = await wire.ask(session, legacy_call("nope"))
        assert (answer.status, answer.error) == (200, -32602)


async def test_a_response_is_accepted(desk):
    """HTTP 202, though nothing was asked."""
    async with serving(desk.server) as connect, connect() as wire:
        session = await wire.start_session()
        answer = await wire.ask(session, body_of(id=1, result={}))
        assert (answer.status, answer.body) == (202, b"")


@pytest.mark.parametrize("told", [False, True], ids=["json", "stream"])
async def test_a_call_is_cancelled_from_another_post(desk, told):
    """Its own POST ends without a response, and the session goes on."""
    async with serving(desk.server) as connect, connect() as one, connect() as two:
        session = await one.start_session()
        await one.send(session, legacy_call("hold", id=7, progress="t", told=told))
        await desk.started.wait()
        assert (await two.ask(session, cancel(8))).status == 202
        assert (await two.ask(session, cancel("7"))).status == 202
        assert desk.cancelled == []
        assert (await two.ask(session, cancel(7))).status == 202
        answer = await one.answer()
        assert answer.status == 200
        assert [each["method"] for each in answer.events] == ["notifications/progress"] * told
        assert desk.cancelled == ["hold"]
        assert (await one.ask(session, legacy_call("echo", id=7, text="x"))).text == "x"


async def test_another_session_with_the_same_id_is_untouched(desk):
    """Two clients both use id 1: each gets its own answer, cancels only its own call (A11)."""
    async with serving(desk.server) as connect, connect() as one, connect() as two:
        ours, theirs = await one.start_session(), await two.start_session()
        await one.send(ours, legacy_call("hold", id=1, name="ours"))
        await two.send(theirs, legacy_call("hold", id=1, name="theirs"))
        await until(lambda: len(desk.server.kernel.running) == 2)
        async with connect() as three:
            assert (await three.ask(theirs, cancel(1))).status == 202

        assert (await two.answer()).events == []
        assert desk.cancelled == ["theirs"]
        desk.release.set()
        assert (await one.answer()).text == "ours released"


async def test_modern_clients_with_the_same_id_never_meet(desk):
    """Every modern request stands by itself, and no notification reaches another's call."""
    async with serving(desk.server) as connect, connect() as one, connect() as two:
        await one.send(*tool_call("hold", id=1, name="one"))
        await two.send(*tool_call("hold", id=1, name="two"))
        await until(lambda: len(desk.server.kernel.running) == 2)
        async with connect() as three:
            params = {"requestId": 1, "_meta": ENVELOPE}
            body = body_of(method="notifications/cancelled", params=params)
            assert (await three.ask({"mcp-protocol-version": MODERN}, body)).status == 202

        desk.release.set()
        assert (await one.answer()).text == "one released"
        assert (await two.answer()).text == "two released"


async def test_an_id_in_use_is_refused(desk):
    """Two calls of one session may not run under one id."""
    async with serving(desk.server) as connect, connect() as one, connect() as two:
        session = await one.start_session()
        await one.send(session, legacy_call("hold", id=1))
        await desk.started.wait()
        answer = await two.ask(session, legacy_call("echo", id=1, text="x"))
        assert (answer.status, answer.error) == (400, -32600)
        desk.release.set()
        assert (await one.answer()).text == "hold released"


async def test_ending_a_session_cancels_its_calls(desk):
    """DELETE stops what runs in the session."""
    async with serving(desk.server) as connect, connect() as one, connect() as two:
        session = await one.start_session()
        await one.send(session, legacy_call("hold"))
        await desk.started.wait()
        assert (await two.ask(session, method="DELETE")).status == 204
        assert (await one.answer()).events == []

    assert desk.cancelled == ["hold"]


async def test_two_replicas_serve_one_session():
    """With the same keys any of them answers any request, round robin."""
    desks = [Desk(), Desk()]
    async with (
        serving(desks[0].server, session_keys=[KEY]) as first,
        serving(desks[1].server, session_keys=[KEY]) as second,
        first() as one,
        second() as two,
    ):
        session = await one.start_session()
        for number in range(6):
            wire = [one, two][number % 2]
            answer = await wire.ask(session, legacy_call("echo", id=number, text=str(number)))
            assert answer.text == str(number)


async def test_a_replica_with_another_key_does_not():
    """Without keys each process has its own."""
    async with (
        serving(Desk().server) as first,
        serving(Desk().server) as second,
        first() as one,
        second() as two,
    ):
        session = await one.start_session()
        assert (await two.ask(session, legacy_call("echo", text="x"))).status == 404


async def test_batches_exist_in_one_version(desk):
    """Accepted where 2025-03-26 was negotiated, refused elsewhere; the session lives on."""
    calls = b"[" + legacy_call("echo", id=1, text="a") + b"," + legacy_call("nope", id=2) + b"]"
    async with serving(desk.server) as connect, connect() as wire:
        for version in VERSIONS:
            session = await wire.start_session(version)
            answer = await wire.ask(session, calls)
            if version == "2025-03-26":
                assert answer.status == 200
                assert {each["id"] for each in answer.json} == {1, 2}
            else:
                assert (answer.status, answer.error) == (400, -32600)

            assert (await wire.ask(session, legacy_call("echo", text="x"))).text == "x"


async def test_a_batch_of_notifications_is_accepted(desk):
    """HTTP 202 and no body, as for one."""
    async with serving(desk.server) as connect, connect() as wire:
        session = await wire.start_session("2025-03-26")
        notification = body_of(method="notifications/initialized")
        answer = await wire.ask(session, b"[" + notification + b"," + notification + b"]")
        assert (answer.status, answer.body) == (202, b"")


async def test_a_batched_call_is_cancelled_from_another_post(desk):
    """Also if requests of the same session came and went in the meantime."""
    async with serving(desk.server) as connect, connect() as one, connect() as two:
        session = await one.start_session("2025-03-26")
        await one.send(session, b"[" + legacy_call("hold", id=7) + b"]")
        await desk.started.wait()
        assert (await two.ask(session, legacy_call("echo", id=1, text="x"))).text == "x"
        assert (await two.ask(session, cancel(7))).status == 202
        answer = await one.answer()
        assert answer.status == 202

    assert desk.cancelled == ["hold"]


async def test_without_sessions_nothing_is_kept_of_the_handshake():
    """`sessions=False`: no id is given or asked for, and there is no DELETE."""
    desk = Desk()
    async with serving(desk.server, sessions=False) as connect, connect() as wire:
        answer = await wire.ask({}, initialize())
        assert answer.json["result"]["protocolVersion"] == LEGACY
        assert "mcp-session-id" not in answer.headers
        for headers in [{}, {"mcp-protocol-version": LEGACY}, {"mcp-session-id": "stale"}]:
            assert (await wire.ask(headers, legacy_call("echo", text="x"))).text == "x"

        for method in ["DELETE", "GET"]:
            answer = await wire.ask({"mcp-session-id": "stale"}, method=method)
            assert (answer.status, answer.headers["allow"]) == (405, "POST")

        notified = await wire.ask({}, body_of(method="notifications/initialized"))
        assert notified.status == 202
        assert (await wire.ask({}, b"[" + legacy_call("echo", text="x") + b"]")).status == 200
        headers = {"mcp-protocol-version": LEGACY}
        refused = await wire.ask(headers, b"[" + legacy_call("echo", text="x") + b"]")
        assert (refused.status, refused.error) == (400, -32600)


async def test_a_modern_client_has_no_session_to_end(desk):
    """DELETE with a modern version is not allowed."""
    async with serving(desk.server) as connect, connect() as wire:
        answer = await wire.ask({"mcp-protocol-version": MODERN}, method="DELETE")
        assert (answer.status, answer.headers["allow"]) == (405, "POST")


async def test_nothing_is_left_of_ten_thousand_sessions():
    """Neither a handshake nor a call that has ended takes memory."""
    application = app(Server("desk", "1"))
    sessions = application._endpoint._legacy._sessions
    sent = []

    async def post(headers, body):
        async def receive():
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message):
            sent.append(message)

        fields = {"host": "localhost", "content-type": "application/json"} | headers
        raw = [(name.encode(), value.encode()) for name, value in fields.items()]
        scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": raw}
        await application(scope, receive, send)
        return dict(sent[-2]["headers"])

    async with application.lifespan():
        for number in range(10_000):
            token = (await post({}, initialize()))[b"mcp-session-id"].decode()
            if number % 10 == 0:
                await post({"mcp-session-id": token}, legacy_call("nope"))

            sent.clear()

    assert sessions.remembered == 0
    assert len(application._watch._running) == 0
