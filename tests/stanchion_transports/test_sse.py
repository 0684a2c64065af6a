"""HTTP+SSE: the stream, where to post, and the session that both are."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import httpx2
import orjson
import pytest
from mcp import ClientSession
from mcp.client.sse import sse_client
from starlette.applications import Starlette
from starlette.routing import Mount

from stanchion import Call, ConfigurationError, Principal, Server
from stanchion_transports import sse

from .http.peer import Desk, by_token, initialize, legacy_call
from .http.test_app import running
from .sse_peer import SseClient, serving_sse


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request):
    """uvicorn runs on asyncio only."""
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture
async def desk():
    """Made on the event loop, as its events want."""
    return Desk()


@pytest.fixture
async def connect(desk):
    async with serving_sse(desk.server) as connect:
        yield connect


async def shake_hands(client):
    assert (await client.post(initialize("2024-11-05"))).status == 202
    answer = orjson.loads(await client.message())
    assert answer["result"]["protocolVersion"] == "2024-11-05"


async def test_the_stream_says_where_to_post(connect):
    """As its first event, with an id that nobody guesses, and with the fields of a stream."""
    async with connect() as one, connect() as two:
        assert one.opened.headers["content-type"] == "text/event-stream"
        assert one.opened.headers["x-accel-buffering"] == "no"
        assert "no-cache" in one.opened.headers["cache-control"]
        path, _, id = one.endpoint.partition("?session_id=")
        assert path == "/messages"
        assert len(id) >= 43  # 256 bits
        assert one.endpoint != two.endpoint


async def test_a_message_is_taken_at_once_and_answered_on_the_stream(desk, connect):
    """The POST does not wait for its call."""
    async with connect() as client:
        await shake_hands(client)
        held = await client.post(legacy_call("hold", id=1))
        assert (held.status, held.body) == (202, b"")
        await desk.started.wait()
        desk.release.set()
        answer = orjson.loads(await client.message())
        assert answer["result"]["content"][0]["text"] == "hold released"


async def test_sessions_never_meet(connect):
    """Each client's answers come on its own stream, whatever ids they choose."""
    async with connect() as one, connect() as two:
        await shake_hands(one)
        await shake_hands(two)
        await two.post(legacy_call("echo", id=1, text="two"))
        await one.post(legacy_call("echo", id=1, text="one"))
        assert b"one" in await one.message()
        assert b"two" in await two.message()


async def test_the_session_ends_with_its_stream(desk, connect):
    """Its call is cancelled, its id is dead, and nothing of it is kept (H2)."""
    async with connect() as client, connect() as other:
        await shake_hands(client)
        await client.post(legacy_call("hold", id=1))
        await desk.started.wait()
        endpoint = client.endpoint
        assert connect.application.open_sessions == 2
        await client.close()
        while connect.application.open_sessions == 2:
            await anyio.lowlevel.checkpoint()

        assert desk.cancelled == ["hold"]
        dead = await other.posting.ask({}, legacy_call("echo", text="x"), path=endpoint)
        assert (dead.status, dead.error) == (404, -32600)
        await shake_hands(other)


@pytest.mark.parametrize(
    "query", ["", "?session_id=", "?session_id=x", "?other=1", "?" + "&" * 10_000]
)
async def test_an_id_that_there_is_not_is_404(connect, query):
    """Forged, missing and dead ids look the same."""
    async with connect() as client:
        answer = await client.posting.ask({}, initialize(), path="/messages" + query)
        assert answer.status == 404


async def test_only_who_opened_a_stream_posts_to_it(desk):
    """A stolen id is worth nothing without its owner's token."""
    async with (
        serving_sse(desk.server, authenticate=by_token) as connect,
        connect(authorization="Bearer alice") as alice,
        connect() as nobody,
    ):
        assert nobody.opened.status == 401
        assert nobody.opened.headers["www-authenticate"] == 'Bearer realm="desk"'
        assert (await alice.post(initialize(), authorization="Bearer bob")).status == 404
        assert (await alice.post(initialize())).status == 401
        assert (await alice.post(initialize(), authorization="Bearer alice")).status == 202
        await alice.message()
        await alice.post(legacy_call("who"), authorization="Bearer alice")
        assert b"alice" in await alice.message()


async def test_each_message_has_what_its_own_token_proves(desk):
    """Not what the stream's, or the message before it, has proved (A10)."""

    @desk.server.tool
    async def scopes(call: Call) -> str:
        return " ".join(sorted(call.principal.scopes)) or "none"

    async def by_scope(headers):
        return Principal("ada", scopes=frozenset(headers.get("x-scopes", "").split()))

    async with serving_sse(desk.server, authenticate=by_scope) as connect, connect() as client:
        await shake_hands(client)
        wanted = ["read", "", "read write", ""]
        for id, held in enumerate(wanted):
            await client.post(legacy_call("scopes", id=id), **{"x-scopes": held})

        answers = [orjson.loads(await client.message()) for _ in wanted]

    found = {answer["id"]: answer["result"]["content"][0]["text"] for answer in answers}
    assert found == {0: "read", 1: "none", 2: "read write", 3: "none"}


async def test_messages_have_the_fields_of_the_request_that_opened_the_stream(desk):
    """Whatever those who post later say, and without credentials that were read."""

    @desk.server.tool
    async def fields(call: Call) -> str:
        wanted = ("host", "x-tenant", "authorization")
        return " ".join(call.peer.headers.get(name, "-") for name in wanted)

    opening = {"authorization": "Bearer alice", "x-tenant": "acme"}
    later = {"authorization": "Bearer alice", "x-tenant": "zeta"}
    async with (
        serving_sse(desk.server, authenticate=by_token) as connect,
        connect(**opening) as client,
    ):
        await client.post(initialize(), **later)
        await client.message()
        await client.post(legacy_call("fields"), **later)
        assert b'"localhost acme -"' in await client.message()


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"origin": "https://evil.example"}, 403),
        ({"content-type": "text/plain"}, 415),
    ],
)
async def test_the_guard_stands_before_both(connect, fields, status):
    """A page that rebinds a name, or posts a form, gets nowhere."""
    async with connect() as client:
        assert (await client.post(initialize(), **fields)).status == status

    if status != 415:
        async with connect(**fields) as turned_away:
            assert turned_away.opened.status == status


async def test_other_methods_and_paths_are_none(connect):
    """Each path has one method."""
    async with connect() as client:
        answer = await client.posting.ask({}, initialize(), path="/sse")
        assert (answer.status, answer.headers["allow"]) == (405, "GET")
        answer = await client.posting.ask(method="GET", path=client.endpoint)
        assert (answer.status, answer.headers["allow"]) == (405, "POST")
        assert (await client.posting.ask({}, initialize(), path="/other")).status == 404


async def test_a_message_is_bounded(desk):
    """By its length; the session lives on."""
    async with serving_sse(desk.server, max_body=2000) as connect, connect() as client:
        assert (await client.post(b"x" * 2001)).status == 413
        await shake_hands(client)


async def test_what_waits_is_bounded(desk, monkeypatch):
    """While the server reads nothing, a client may post so much and no more."""
    monkeypatch.setattr("stanchion.stream.MAX_PENDING", 1)
    async with serving_sse(desk.server, max_body=2000) as connect, connect() as client:
        await shake_hands(client)
        statuses = []
        while 503 not in statuses:
            answer = await client.post(legacy_call("hold", id=len(statuses)))
            statuses.append(answer.status)
            assert len(statuses) < 20

        assert set(statuses) == {202, 503}
        assert answer.headers["retry-after"] == "1"
        desk.release.set()
        for _ in statuses[:-1]:
            assert b"released" in await client.message()

        assert (await client.post(legacy_call("echo", id="x", text="again"))).status == 202
        assert b"again" in await client.message()


async def test_streams_are_bounded(desk):
    """One too many is refused, and one that ends makes room."""
    async with serving_sse(desk.server, max_sessions=1) as connect:
        async with connect() as first, connect() as second:
            assert second.opened.status == 503
            await first.close()

        while connect.application.open_sessions:
            await anyio.lowlevel.checkpoint()

        async with connect() as third:
            assert third.opened.status == 200


async def test_silence_is_filled_with_comments(desk):
    """Proxies cut streams that say nothing (H4)."""
    async with serving_sse(desk.server, keep_alive=0.01) as connect, connect() as client:
        await shake_hands(client)
        await client.post(legacy_call("hold", id=1))
        await desk.started.wait()
        assert await client.stream.chunk() == b": still here\n\n"
        desk.release.set()
        assert b"released" in await client.message()


async def test_a_draining_server_opens_no_stream(desk, connect):
    """Those that are open stay, and say that no call is taken."""
    async with connect() as client:
        await shake_hands(client)
        await desk.server.drain(0)
        await client.post(legacy_call("echo", text="x"))
        assert orjson.loads(await client.message())["error"]["code"] == 503
        async with connect() as late:
            assert late.opened.status == 503


@pytest.mark.parametrize("prefix", ["", "/tools", "/a b"])
async def test_clients_are_told_the_mounted_path(desk, prefix):
    """Below any prefix, with a life of its own or the outer application's."""
    mounted = sse.app(desk.server)
    outer = Starlette(routes=[Mount(prefix, mounted)], lifespan=mounted.lifespan)
    path = prefix.replace(" ", "%20")
    async with running(outer, path + "/sse") as connect, connect() as one, connect() as two:
        client = SseClient(one, two)
        await client.open()
        assert client.endpoint.startswith(path + "/messages?")
        await shake_hands(client)
        await client.close()


async def test_it_runs_by_itself(desk):
    """Any ASGI server can run it, life included."""
    async with running(sse.app(desk.server), "/sse") as connect, connect() as one, connect() as two:
        client = SseClient(one, two)
        await client.open()
        await shake_hands(client)
        await client.close()


@pytest.mark.parametrize(
    "options",
    [
        {"path": "sse"},
        {"messages_path": "messages"},
        {"messages_path": "/sse"},
        {"max_body": 0},
        {"max_sessions": 0},
        {"keep_alive": 0},
    ],
)
def test_options_out_of_range_are_refused(options):
    """At the start."""
    with pytest.raises(ConfigurationError):
        sse.app(Server("desk"), **options)


async def test_the_official_client_is_served(desk, connect):
    """It lists, calls, sees progress, and leaves."""

    def network(headers=None, timeout=None, auth=None):
        return httpx2.AsyncClient(headers=headers, timeout=timeout, auth=auth, trust_env=False)

    steps = []

    async def on_progress(progress, total, message):
        steps.append(progress)

    async with (
        sse_client(connect.url, httpx_client_factory=network) as (reading, writing),
        ClientSession(reading, writing) as session,
    ):
        await session.initialize()
        assert "echo" in {tool.name for tool in (await session.list_tools()).tools}
        result = await session.call_tool("echo", {"text": "hello"})
        assert result.content[0].text == "hello"
        await session.call_tool("steps", {"count": 3}, progress_callback=on_progress)

    assert steps == [1, 2, 3]
