"""The application: its options, its health, and its life inside another one."""

from __future__ import annotations

import socket
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from stanchion import ConfigurationError, Server
from stanchion_transports.http import app

from .peer import Desk, body_of, connector, initialize, legacy_call, modern, serving, tool_call


@asynccontextmanager
async def running(application, path="/mcp", *, lifespan="on"):
    """Run any ASGI application in uvicorn, and give a `connect`."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        application, lifespan=lifespan, log_config=None, timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    async with anyio.create_task_group() as group:
        group.start_soon(server._serve, [listener])
        while not server.started:
            await anyio.lowlevel.checkpoint()

        yield connector(f"http://127.0.0.1:{listener.getsockname()[1]}{path}")
        server.should_exit = True


@pytest.mark.parametrize(
    "options",
    [
        {"path": "mcp"},
        {"path": ""},
        {"max_body": 0},
        {"keep_alive": 0},
        {"session_ttl": -1},
        {"session_keys": [b"short"]},
    ],
)
def test_options_out_of_range_are_refused(options):
    """A bound that makes no sense is an error at the start."""
    with pytest.raises(ConfigurationError):
        app(Server("desk", "1"), **options)


async def test_health_is_told(desk):
    """Alive as long as the process serves, ready until the server drains."""
    async with serving(desk.server) as connect, connect() as wire:
        assert (await wire.ask(method="GET", path="/healthz")).json == {"status": "alive"}
        ready = await wire.ask(method="GET", path="/readyz")
        assert (ready.status, ready.json) == (200, {"status": "ready"})
        await desk.server.drain(0)
        drained = await wire.ask(method="GET", path="/readyz")
        assert (drained.status, drained.json) == (503, {"status": "draining"})
        assert (await wire.ask(method="GET", path="/healthz")).status == 200


async def test_health_is_told_to_every_host(desk):
    """A probe calls by an address that no client knows."""
    async with serving(desk.server) as connect, connect() as wire:
        for path in ["/healthz", "/readyz"]:
            answer = await wire.ask({"host": "10.0.0.7:8000"}, method="GET", path=path)
            assert answer.status == 200


async def test_a_draining_server_refuses_calls(desk):
    """HTTP 503 and when to try again, in the modern era; the code alone in the legacy one."""
    async with serving(desk.server) as connect, connect() as wire:
        session = await wire.start_session()
        await desk.server.drain(0)
        answer = await wire.ask(*tool_call("echo", text="x"))
        assert (answer.status, answer.error) == (503, 503)
        assert answer.headers["retry-after"] == "1"
        answer = await wire.ask(session, legacy_call("echo", text="x"))
        assert answer.error == 503
        answer = await wire.ask({}, initialize())
        assert "mcp-session-id" not in answer.headers


async def test_other_routes_stand_beside_the_endpoint(desk):
    """`routes=` adds to the application, and `path=` moves the endpoint."""
    routes = [Route("/about", lambda request: PlainTextResponse("about us"))]
    async with serving(desk.server, path="/api/", routes=routes) as connect, connect() as wire:
        assert (await wire.ask(method="GET", path="/about")).body == b"about us"
        for path in ["/api", "/api/"]:
            assert (await wire.ask(*tool_call("echo", text="x"), path=path)).text == "x"

        assert (await wire.ask(*tool_call("echo", text="x"), path="/mcp")).status == 404


async def test_the_endpoint_may_be_the_root(desk):
    """With `path="/"`, health stays where it is."""
    async with serving(desk.server, path="/") as connect, connect() as wire:
        assert (await wire.ask(*tool_call("echo", text="x"))).text == "x"
        assert (await wire.ask(method="GET", path="/healthz")).status == 200


async def test_bounds_are_options(desk):
    """`max_body` bounds the body, exactly."""
    fields, body = tool_call("echo", text="x")
    async with serving(desk.server, max_body=len(body)) as connect, connect() as wire:
        assert (await wire.ask(fields, body)).text == "x"
        assert (await wire.ask(fields, body + b" ")).status == 413
        assert (await wire.ask(fields, body)).text == "x"


async def test_hosts_and_origins_are_options(desk):
    """What `allowed_hosts` and `allowed_origins` name comes in."""
    names = {"allowed_hosts": ["api.example"], "allowed_origins": ["https://page.example"]}
    async with serving(desk.server, **names) as connect, connect() as wire:
        for host, origin, status in [
            ("api.example", "https://page.example", 200),
            ("api.example:80", "https://api.example", 200),
            ("api.example", "https://evil.example", 403),
            ("localhost", "https://page.example", 421),
        ]:
            fields, body = tool_call("echo", text="x")
            answer = await wire.ask(fields | {"host": host, "origin": origin}, body)
            assert answer.status == status


async def test_it_runs_by_itself(desk):
    """Any ASGI server can run it, life included; it needs no `serve`."""
    async with running(app(desk.server)) as connect, connect() as wire:
        assert (await wire.ask(*tool_call("echo", text="x"))).text == "x"

    assert desk.server.draining


@pytest.mark.parametrize("prefix", ["", "/tools"])
async def test_it_is_mounted_in_another_application(desk, prefix):
    """With `lifespan=app.lifespan` it is served below any prefix, beside other routes."""
    mounted = app(desk.server)
    outer = Starlette(
        routes=[
            Route("/own", lambda request: PlainTextResponse("own")),
            Mount(prefix or "/", mounted),
        ],
        lifespan=mounted.lifespan,
    )
    async with running(outer, prefix + "/mcp") as connect, connect() as wire:
        assert (await wire.ask(*tool_call("echo", text="x"))).text == "x"
        assert (await wire.ask(*tool_call("steps", count=2, progress="t"))).text == "done"
        assert (await wire.ask(method="GET", path="/own")).body == b"own"
        assert (await wire.ask(method="GET", path=prefix + "/readyz")).status == 200
        session = await wire.start_session()
        assert (await wire.ask(session, legacy_call("echo", text="x"))).text == "x"


async def test_without_its_life_it_says_what_is_missing(desk, caplog):
    """HTTP 503 at once, in either era, and the log says what to do."""
    outer = Starlette(routes=[Mount("/", app(desk.server))])
    async with running(outer) as connect, connect() as wire:
        notification = body_of(method="notifications/initialized")
        for fields, body in [
            tool_call("echo", text="x"),
            modern("server/discover"),
            ({}, initialize()),
            ({"mcp-protocol-version": "2026-07-28"}, notification),
        ]:
            answer = await wire.ask(fields, body)
            assert (answer.status, answer.error) == (503, 503)

        assert (await wire.ask(method="GET", path="/readyz")).status == 503

    assert "lifespan=app.lifespan" in caplog.text


async def test_a_server_that_runs_elsewhere_does_not_hide_a_missing_life(desk, caplog):
    """The watch must run too, or nobody would notice clients that go away."""
    outer = Starlette(routes=[Mount("/", app(desk.server))])
    async with desk.server, running(outer) as connect, connect() as wire:
        assert (await wire.ask(*tool_call("echo", text="x"))).status == 503

    assert "lifespan=app.lifespan" in caplog.text


async def test_two_applications_share_a_server():
    """Each with options of its own; the server stops with the last."""
    desk = Desk()
    async with serving(desk.server, path="/a") as first:
        async with serving(desk.server, path="/b") as second, second() as wire:
            assert (await wire.ask(*tool_call("echo", text="x"))).text == "x"

        async with first() as wire:
            assert (await wire.ask(*tool_call("echo", text="x"))).text == "x"
