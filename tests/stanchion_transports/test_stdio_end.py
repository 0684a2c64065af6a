"""The stdio transport in one process: how serving ends."""

from __future__ import annotations

import math
import os
import signal
import socket
import sys
import threading
from contextlib import contextmanager

import anyio
import orjson
import pytest

from stanchion import Server
from stanchion_transports.stdio import run, serve

from .pipe_peer import Desk, PipePeer, call, line, serving, text

MEBIBYTE = 1 << 20


@pytest.fixture
async def desk():
    """Made on the event loop, as its events want."""
    return Desk()


async def test_running_calls_may_finish_after_the_end_of_input(desk):
    """What was asked before the end, without a line feed at last, is answered within the grace."""
    async with serving(desk.server, grace=math.inf) as peer:
        await peer.send(call(1, "hold"), call(2, "echo", text="last").rstrip(b"\n"))
        peer.close_input()
        assert (await peer.receive())["id"] == 2
        desk.release.set()
        assert text(await peer.receive()) == "hold released"


async def test_calls_beyond_the_grace_are_cancelled(desk):
    """Serving ends although a call would run for ever."""
    async with serving(desk.server, grace=0) as peer:
        await peer.send(call(1, "hold"))
        await desk.started.wait()

    assert desk.cancelled == ["hold"]


@pytest.mark.parametrize("kind", ["pipe", "socket"])
async def test_a_peer_that_stops_reading_ends_the_serving(desk, kind):
    """A broken output ends it like the end of input, though the input is still open."""
    peer = PipePeer(kind)
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: serve(desk.server, stdin=peer.stdin, stdout=peer.stdout, grace=0))
        await peer.send(call(1, "hold"), call(2, "big", size=MEBIBYTE))
        await desk.started.wait()
        await peer.begun()
        peer.stop_reading()
        if kind == "socket":
            peer.close_input()  # both directions of a socket end together

    peer.close()
    assert desk.cancelled == ["hold"]


async def test_a_call_may_finish_after_its_peer_has_gone(desk):
    """It has its grace, though nobody reads its answer."""
    peer = PipePeer()
    async with anyio.create_task_group() as group:
        group.start_soon(
            lambda: serve(desk.server, stdin=peer.stdin, stdout=peer.stdout, grace=math.inf)
        )
        await peer.send(call(1, "hold"), call(2, "big", size=MEBIBYTE))
        await desk.started.wait()
        await peer.begun()
        peer.stop_reading()
        await anyio.wait_all_tasks_blocked()
        desk.release.set()

    peer.close()
    assert desk.cancelled == []


async def test_stop_drains(desk):
    """Once told to stop it reads no more, and a call that does not end is answered a refusal."""
    stop = anyio.Event()
    async with serving(desk.server, stop=stop, drain=0) as peer:
        await peer.send(call(1, "hold"))
        await desk.started.wait()
        stop.set()
        answer = await peer.receive()
        assert answer["id"] == 1
        assert answer["error"]["code"] == 503

    assert desk.cancelled == ["hold"]


async def test_stop_waits_for_calls_that_end(desk):
    """A call that ends while the server drains gets its real answer."""
    stop = anyio.Event()
    async with serving(desk.server, stop=stop, drain=math.inf) as peer:
        await peer.send(call(1, "hold"))
        await desk.started.wait()
        stop.set()
        await anyio.wait_all_tasks_blocked()
        await peer.send(call(2, "echo", text="nobody reads this"))
        desk.release.set()
        assert text(await peer.receive()) == "hold released"


async def test_cancelling_the_serving_is_prompt(desk):
    """Whoever cancels `serve` is not held up by a peer that reads nothing."""
    peer = PipePeer()
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: serve(desk.server, stdin=peer.stdin, stdout=peer.stdout))
        await peer.send(call(1, "big", size=MEBIBYTE))
        await peer.begun()
        group.cancel_scope.cancel()

    peer.close()


async def test_an_input_that_breaks_off_ends_the_serving(desk):
    """A socket that the peer resets is the end of input, and no crash."""
    listener = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(listener.getsockname())
    server, _ = listener.accept()
    with listener, server, anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            fd = server.fileno()
            group.start_soon(lambda: serve(desk.server, stdin=fd, stdout=fd))
            await anyio.wait_all_tasks_blocked()
            # Lingering for no time makes the kernel send a reset in place of an orderly end.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            client.close()


@contextmanager
def standard_streams():
    """Put pipes in the place of this process's own standard input and output."""
    peer = PipePeer()
    saved = os.dup(0), os.dup(1)
    os.dup2(peer.stdin, 0)
    os.dup2(peer.stdout, 1)
    os.write(peer._out, line({"jsonrpc": "2.0", "id": 1, "method": "tools/call"}))
    peer.close_input()
    try:
        yield peer
    finally:
        for number, back in enumerate(saved):
            os.dup2(back, number)
            os.close(back)

        peer.close()


@pytest.mark.parametrize(
    ("backend", "uvloop"), [("asyncio", False), ("asyncio", True), ("trio", False)]
)
def test_run_serves_the_standard_streams(backend, uvloop):
    """It serves until the input ends, and leaves signals and streams as it found them."""
    printing, handler = sys.stdout, signal.getsignal(signal.SIGTERM)
    with standard_streams() as peer:
        options = {"use_uvloop": True} if uvloop else None
        run(Server("run", "1"), backend=backend, backend_options=options)
        answer = os.read(peer._in, 65536)

    assert orjson.loads(answer)["id"] == 1
    assert sys.stdout is printing
    assert signal.getsignal(signal.SIGTERM) is handler


def test_run_beside_the_main_thread_only_serves():
    """In another thread it touches neither the signals nor the process."""
    with standard_streams() as peer:
        thread = threading.Thread(target=run, args=[Server("run", "1")])
        thread.start()
        thread.join(30)
        answer = os.read(peer._in, 65536)

    assert not thread.is_alive()
    assert orjson.loads(answer)["id"] == 1
