"""The end of a real server process: signals, the drain, and whatever is stuck."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from .peer import connector, event_of, modern, tool_call

SCRIPT = Path(__file__).with_name("http_server.py")


@pytest.fixture
def anyio_backend():
    """The client's loop; the server's is its own."""
    return "asyncio"


class Process:
    """A server as a process of its own."""

    def __init__(self, process, connect):
        self.process = process
        self.connect = connect
        self.log = ""

    async def until_it_says(self, words):
        """Read standard error up to a line with *words*."""
        while True:
            line = await anyio.to_thread.run_sync(self.process.stderr.readline)
            assert line, f"the process ended without {words!r}: {self.log}"
            self.log += line
            if words in line:
                return

    def signal(self, number):
        """Send it a signal."""
        self.process.send_signal(number)

    async def ended(self):
        """Wait for its end, and give its exit status; never longer than a stuck server would."""
        _, rest = await anyio.to_thread.run_sync(self.process.communicate)
        self.log += rest
        return self.process.returncode


@asynccontextmanager
async def process(*words):
    """Start the server as a process on a free port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    child = subprocess.Popen(
        [sys.executable, SCRIPT, str(port), *words], stderr=subprocess.PIPE, text=True
    )
    try:
        connect = connector(f"http://127.0.0.1:{port}/mcp")
        running = Process(child, connect)
        await running.until_it_says(f"serving http://127.0.0.1:{port}/mcp")
        yield running
    finally:
        child.kill()
        child.wait()
        child.stderr.close()


STOPPING = [signal.SIGTERM, signal.SIGINT]


@pytest.mark.parametrize("number", STOPPING)
async def test_an_idle_process_ends(number):
    """With a connection open and nothing running it ends at once, with status 0."""
    async with process("long") as server, server.connect() as wire:
        assert (await wire.ask(*modern("server/discover"))).status == 200
        server.signal(number)
        assert await server.ended() == 0
        assert "run has returned" in server.log


async def test_a_process_drains():
    """Readiness flips, the running call is answered, and then the process ends with status 0."""
    async with process("long") as server, server.connect() as one, server.connect() as two:
        await one.send(*tool_call("hold"))
        await server.until_it_says("held")
        assert (await two.ask(method="GET", path="/readyz")).status == 200
        server.signal(signal.SIGTERM)
        await server.until_it_says("draining")
        assert (await two.ask(method="GET", path="/readyz")).status == 503
        assert (await two.ask(*modern("server/discover"))).status == 503
        assert (await two.ask(method="GET", path="/release")).status == 200
        assert (await one.answer()).text == "released"
        assert await server.ended() == 0
        assert "run has returned" in server.log


async def test_a_second_signal_ends_the_process_at_once():
    """With the status by which a shell shows a signal, though a call still has an hour."""
    async with process("long") as server, server.connect() as wire:
        await wire.send(*tool_call("hold", told=True, progress="t"))
        await server.until_it_says("held")
        server.signal(signal.SIGINT)
        await server.until_it_says("draining")
        server.signal(signal.SIGTERM)
        assert await server.ended() == 128 + signal.SIGTERM


@pytest.mark.parametrize("number", STOPPING)
@pytest.mark.parametrize("told", [False, True], ids=["json", "stream"])
async def test_a_call_that_outlives_the_drain_is_answered(number, told):
    """It gets the refusal as its answer, in a stream or not, and the process ends with 0."""
    async with process("short") as server, server.connect() as wire:
        await wire.send(*tool_call("hold", told=told, progress="t"))
        await server.until_it_says("held")
        if told:
            assert event_of((await wire.head(), await wire.chunk())[1])["method"]

        server.signal(number)
        if told:
            assert event_of(await wire.chunk())["error"]["code"] == 503
            assert await wire.chunk() == b""
        else:
            answer = await wire.answer()
            assert (answer.status, answer.error) == (503, 503)

        assert await server.ended() == 0


async def test_a_stuck_thread_does_not_keep_the_process():
    """A sync tool that never returns is given up, its call is answered, and the process ends."""
    async with process("short", "timer") as server, server.connect() as wire:
        await wire.send(*tool_call("stick"))
        await server.until_it_says("stuck")
        server.signal(signal.SIGTERM)
        assert (await wire.answer()).error == 503
        assert await server.ended() == 0


@pytest.mark.parametrize(("tool", "status"), [("cling", 0), ("block", 1)])
async def test_a_call_that_cannot_be_stopped_does_not_keep_the_process(tool, status):
    """One that shields itself is cut off; one that blocks the loop is ended with the process."""
    async with process("short") as server, server.connect() as wire:
        await wire.send(*tool_call(tool))
        await server.until_it_says("ing\n")
        server.signal(signal.SIGTERM)
        assert await server.ended() == status


async def test_a_lifespan_that_hangs_does_not_keep_the_process():
    """What the server closes has its time, too."""
    async with process("short", "slow") as server:
        server.signal(signal.SIGTERM)
        await server.until_it_says("closing")
        assert await server.ended() == 1
