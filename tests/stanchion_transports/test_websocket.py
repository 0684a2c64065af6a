"""MCP over WebSocket: the handshake, frames, bounds, and the end."""

from __future__ import annotations

import importlib.util

import anyio
import orjson
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from stanchion import Call, ConfigurationError, Server, Tool
from stanchion_transports import websocket
from stanchion_transports.http import app, serve

from .http.peer import ENVELOPE, Desk, body_of, by_token, initialize, legacy_call, tool_call
from .websocket_peer import connected, opened

HTTP_ANSWERS = {"websocket.http.response": {}}


@pytest.fixture
async def desk():
    """Made on the event loop, as its events want."""
    return Desk()


@pytest.fixture
async def application(desk):
    application = app(
        desk.server,
        websocket_path="/ws",
        max_body=2000,
        allowed_origins=["https://page.example"],
    )
    async with application.lifespan():
        yield application


async def shake_hands(client):
    await client.send(initialize())
    assert b"protocolVersion" in await client.receive()


async def test_one_connection_is_one_peer(application):
    """Text frames both ways, and two clients with the same ids never meet."""
    async with connected(application) as one, connected(application) as two:
        await shake_hands(one)
        await shake_hands(two)
        await one.send(legacy_call("echo", id=1, text="one"))
        await two.send(legacy_call("echo", id=1, text="two"))
        assert b"one" in await one.receive()
        assert b"two" in await two.receive()


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"origin": "https://evil.example"}, 403),
        ({"subprotocols": []}, 400),
        ({"subprotocols": ["soap"]}, 400),
    ],
)
async def test_a_handshake_is_refused(application, options, status):
    """With an HTTP answer where the server can, else by closing before it is accepted."""
    async with opened(application, extensions=HTTP_ANSWERS, **options) as client:
        start = await client.event()
        assert (start["type"], start["status"]) == ("websocket.http.response.start", status)
        body = await client.event()
        assert body["type"] == "websocket.http.response.body"
        assert orjson.loads(body["body"])["error"]["code"] == -32600

    async with opened(application, **options) as client:
        assert await client.event() == {"type": "websocket.close", "code": 1008}


async def test_named_pages_and_other_subprotocols_come_in(application):
    """An origin may be allowed, and a client may know more subprotocols than ours."""
    options = {"origin": "https://page.example", "subprotocols": ["other", "mcp"]}
    async with connected(application, **options) as client:
        await shake_hands(client)


async def test_no_other_path_is_one(application):
    """Starlette closes what has no route."""
    async with opened(application, path="/other") as client:
        assert (await client.event())["type"] == "websocket.close"


async def test_who_connects_is_found_once(desk):
    """From the handshake's fields; who may not come in is told so."""
    application = app(desk.server, websocket_path="/ws", authenticate=by_token)
    async with application.lifespan():
        async with connected(application, authorization="Bearer alice") as client:
            await shake_hands(client)
            await client.send(legacy_call("who"))
            assert b"alice" in await client.receive()

        async with opened(application, extensions=HTTP_ANSWERS) as client:
            start = await client.event()
            assert start["status"] == 401
            assert (b"www-authenticate", b'Bearer realm="desk"') in start["headers"]
            await client.event()


async def test_messages_have_the_fields_of_the_handshake(desk):
    """Host and others in both eras, for layers and handlers, without credentials that were read."""
    told = []

    @desk.server.tool
    async def fields(call: Call) -> str:
        wanted = ("host", "x-tenant", "authorization")
        return " ".join(call.peer.headers.get(name, "-") for name in wanted)

    @desk.server.on_notification("notifications/told")
    async def tell(note):
        told.append(note.peer.headers["x-tenant"])

    application = app(desk.server, websocket_path="/ws", authenticate=by_token)
    sent = {"authorization": "Bearer alice", "x-tenant": "acme"}
    async with application.lifespan(), connected(application, **sent) as client:
        await client.send(tool_call("fields")[1])
        assert b'"localhost acme -"' in await client.receive()
        await client.send(body_of(method="notifications/told", params={"_meta": ENVELOPE}))
        await anyio.wait_all_tasks_blocked()
        assert told == ["acme"]
        await shake_hands(client)
        await client.send(legacy_call("fields"))
        assert b'"localhost acme -"' in await client.receive()


async def test_no_field_mirrors_an_argument(desk):
    """The handshake's fields are not the message's, so that none is missing among them."""
    mirrored = {"type": "string", "x-mcp-header": "Region"}
    schema = {"type": "object", "properties": {"region": mirrored}}
    desk.server.add_tool(Tool("near", lambda arguments: "done", input_schema=schema))
    application = app(desk.server, websocket_path="/ws")
    async with application.lifespan(), connected(application) as client:
        await client.send(tool_call("near", region="eu")[1])
        assert b'"done"' in await client.receive()


async def test_a_binary_frame_ends_the_connection(desk, application):
    """With the code for what is not supported; running calls end with it."""
    async with connected(application) as client:
        await shake_hands(client)
        await client.send(legacy_call("hold"))
        await desk.started.wait()
        client.send_bytes(b"{}")
        assert (await client.event())["code"] == 1003

    assert desk.cancelled == ["hold"]


async def test_a_frame_is_bounded_in_bytes(application):
    """Not in characters: 700 of three bytes each are too many, 1000 of one are not."""
    async with connected(application) as client:
        await shake_hands(client)
        await client.send(legacy_call("echo", text="x" * 1000))
        assert b"xxx" in await client.receive()
        await client.send(legacy_call("echo", text="\u20ac" * 700))
        assert (await client.event())["code"] == 1009


async def test_a_client_that_goes_ends_its_calls(desk, application):
    """Also where an answer is on its way."""
    async with connected(application) as client:
        await shake_hands(client)
        await client.send(legacy_call("hold"))
        await desk.started.wait()
        await client.send(legacy_call("big", id=2, size=100_000))
        await anyio.wait_all_tasks_blocked()
        client.vanish()

    assert desk.cancelled == ["hold"]


async def test_connections_are_bounded(desk):
    """One too many is answered 503, and one that ends makes room."""
    route = websocket.route(desk.server, max_connections=1)
    application = Starlette(routes=[Mount("/in", routes=[route])])
    async with desk.server:
        async with connected(application, path="/in/ws"):
            assert route.endpoint.open_connections == 1
            async with opened(application, path="/in/ws", extensions=HTTP_ANSWERS) as late:
                start = await late.event()
                assert start["status"] == 503
                assert (b"retry-after", b"1") in start["headers"]
                await late.event()

        async with connected(application, path="/in/ws") as client:
            await shake_hands(client)


async def test_a_server_that_does_not_run_takes_no_connection(desk):
    """HTTP 503, as for any transport."""
    application = Starlette(routes=[websocket.route(desk.server)])
    async with opened(application, extensions=HTTP_ANSWERS) as client:
        assert (await client.event())["status"] == 503
        await client.event()


@pytest.mark.parametrize(
    "options", [{"path": "ws"}, {"max_frame": 0}, {"max_connections": 0}], ids=str
)
def test_options_out_of_range_are_refused(options):
    """At the start."""
    with pytest.raises(ConfigurationError):
        websocket.route(Server("desk"), **options)


async def test_serving_without_a_library_says_what_to_install(desk, monkeypatch):
    """Before anything listens, instead of turning every client away."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"stanchion\[websocket\]"):
        await serve(desk.server, port=0, websocket_path="/ws")
