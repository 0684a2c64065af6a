"""Serving over uvicorn: the socket, the signals, and the end of a real process."""

from __future__ import annotations

import os
import signal
import socket
import threading

import anyio
import anyio.from_thread
import anyio.lowlevel
import pytest

from stanchion import Call, ConfigurationError, Server
from stanchion_transports.http import run, serve

from .peer import Desk, connector, serving, tool_call


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
async def test_port_zero_is_a_free_one(desk, host):
    """The URL that is told is the endpoint's, whatever the port turned out to be."""
    async with serving(desk.server, host=host, path="/api") as connect, connect() as wire:
        shown = f"[{host}]" if ":" in host else host
        assert connect.url.startswith(f"http://{shown}:")
        assert connect.url.endswith("/api")
        assert not connect.url.endswith(":0/api")
        authority = connect.url.split("/")[2]
        fields, body = tool_call("echo", text="x")
        answer = await wire.ask(fields | {"host": authority}, body)
        assert answer.text == "x"
        assert "server" not in answer.headers


async def test_the_address_is_the_sockets(desk):
    """Whatever a header says: layers that trust a proxy must know that it is the proxy."""

    @desk.server.tool(name="address")
    async def address(call: Call) -> str:
        return call.peer.address

    async with serving(desk.server) as connect, connect() as wire:
        fields, body = tool_call("address")
        forwarded = {"x-forwarded-for": "203.0.113.9", "forwarded": "for=203.0.113.9"}
        assert (await wire.ask(fields | forwarded, body)).text == "127.0.0.1"


async def test_a_taken_port_is_an_error(desk):
    """The caller gets the OSError, and nothing is left behind."""
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        await serve(desk.server, port=taken.getsockname()[1])

    assert desk.server.draining


async def test_a_bad_option_is_an_error(desk):
    """Before anything listens."""
    with pytest.raises(ConfigurationError):
        await serve(desk.server, port=0, max_body=0)


def test_a_bad_option_of_run_is_an_error():
    """As for `serve`, and the process goes on."""
    with pytest.raises(ConfigurationError):
        run(Server("bad", "1"), port=0, max_body=0)


async def test_cancelling_leaves_no_connection(desk):
    """Whoever cancels `serve` finds idle connections closed and calls ended."""
    async with serving(desk.server) as connect:
        idle = await anyio.connect_tcp("127.0.0.1", int(connect.url.split(":")[2].split("/")[0]))
        async with connect() as wire:
            assert (await wire.ask(*tool_call("echo", text="x"))).text == "x"

    with pytest.raises(anyio.EndOfStream):
        await idle.receive()

    await idle.aclose()
    assert desk.server.draining


async def test_cancelling_ends_calls_that_go_on(desk, monkeypatch, caplog):
    """They have uvicorn's time to end, and then they are cancelled."""
    monkeypatch.setattr("stanchion_transports.http.serving.CLOSE_GRACE", 0)
    async with serving(desk.server) as connect:
        port = int(connect.url.split(":")[2].split("/")[0])
        stream = await anyio.connect_tcp("127.0.0.1", port)
        wire = connector(connect.url)
        async with wire() as other:
            await other.send(*tool_call("hold"))
            await desk.started.wait()
            await stream.aclose()

    assert desk.cancelled == ["hold"]


async def test_a_signal_drains_and_a_call_may_end(desk):
    """Readiness flips first, new calls are refused, and the running call is answered."""
    async with anyio.create_task_group() as group:

        async def start(*, task_status):
            await serve(desk.server, port=0, drain=3600, task_status=task_status)

        connect = connector(await group.start(start))
        async with connect() as one, connect() as two:
            await one.send(*tool_call("hold"))
            await desk.started.wait()
            os.kill(os.getpid(), signal.SIGTERM)
            while not desk.server.draining:
                await anyio.lowlevel.checkpoint()

            assert (await two.ask(method="GET", path="/readyz")).status == 503
            assert (await two.ask(*tool_call("echo", text="x"))).status == 503
            desk.release.set()
            assert (await one.answer()).text == "hold released"


async def test_a_second_signal_does_not_wait(desk):
    """The calls that still run are cancelled."""
    async with anyio.create_task_group() as group:

        async def start(*, task_status):
            await serve(desk.server, port=0, drain=3600, task_status=task_status)

        connect = connector(await group.start(start))
        async with connect() as wire:
            await wire.send(*tool_call("hold"))
            await desk.started.wait()
            os.kill(os.getpid(), signal.SIGINT)
            while not desk.server.draining:
                await anyio.lowlevel.checkpoint()

            os.kill(os.getpid(), signal.SIGINT)

    assert desk.cancelled == ["hold"]


def test_serving_beside_the_main_thread():
    """In a thread of its own it leaves signals alone, and ends when it is cancelled."""
    before = signal.getsignal(signal.SIGTERM)
    with anyio.from_thread.start_blocking_portal() as portal:
        desk = portal.call(make_desk)

        async def start(*, task_status):
            await serve(desk.server, port=0, task_status=task_status)

        future, url = portal.start_task(start)

        async def ask():
            async with connector(url)() as wire:
                return await wire.ask(*tool_call("echo", text="x"))

        assert portal.call(ask).text == "x"
        assert signal.getsignal(signal.SIGTERM) is before
        future.cancel()


async def make_desk():
    """Make a desk on the loop that it is for."""
    return Desk()


def test_run_beside_the_main_thread_only_serves():
    """In another thread `run` takes over neither the signals nor the process."""

    class Stopping(Server):
        """A server that does not start."""

        def lifespan(self):
            started.set()
            raise ConfigurationError("stop here")

    started, errors = threading.Event(), []

    def target():
        try:
            run(Stopping("stopping", "1"), port=0)
        except ConfigurationError as error:
            errors.append(str(error))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=target)
    thread.start()
    thread.join(30)
    assert started.is_set()
    assert errors == ["stop here"]
    assert signal.getsignal(signal.SIGTERM) is before


def test_an_error_at_the_start_of_run_is_the_callers():
    """The process goes on, and its signals are as before."""
    before = signal.getsignal(signal.SIGTERM)
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        run(Server("late", "1"), port=taken.getsockname()[1])

    assert signal.getsignal(signal.SIGTERM) is before
