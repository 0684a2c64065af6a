"""A client at the other end of file descriptors, for the tests of stdio."""

from __future__ import annotations

import os
import socket
from contextlib import asynccontextmanager, suppress

import anyio
import orjson

from stanchion import Call, Server
from stanchion_transports.stdio import serve

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "pipe", "version": "1"},
}


def call(id, tool, /, progress=None, **arguments):
    """Make the line of a tool call in the modern era."""
    meta = ENVELOPE if progress is None else {**ENVELOPE, "progressToken": progress}
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    return line({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})


def cancel(id):
    """Make the line that cancels request *id*."""
    params = {"requestId": id, "_meta": ENVELOPE}
    return line({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})


def line(message):
    """Make the line of a message."""
    return orjson.dumps(message) + b"\n"


def text(message):
    """Give the text of a tool's answer."""
    return message["result"]["content"][0]["text"]


class Desk:
    """A server whose tools the tests hold in their hands."""

    def __init__(self):
        self.server = Server("desk", "1")
        self.started = anyio.Event()
        self.release = anyio.Event()
        self.stopped = anyio.Event()
        self.cancelled = []

        @self.server.tool
        async def echo(text: str) -> str:
            return text

        @self.server.tool
        async def hold(name: str = "hold") -> str:
            self.started.set()
            try:
                await self.release.wait()
            except anyio.get_cancelled_exc_class():
                self.cancelled.append(name)
                self.stopped.set()
                raise

            return f"{name} released"

        @self.server.tool
        async def big(size: int) -> str:
            return "x" * size

        @self.server.tool
        async def tell(call: Call, size: int) -> str:
            await call.progress(1, message="p" * size)
            return "told"


class PipePeer:
    """The client's two ends, and the server's two as the server is given them."""

    def __init__(self, kind="pipe"):
        self._kind = kind
        if kind == "pipe":
            self.stdin, self._out = os.pipe()
            self._in, self.stdout = os.pipe()
        else:
            # One socket for both directions, as Node.js gives its children.
            server, client = socket.socketpair()
            self.stdin, self._in = server.detach(), client.detach()
            self.stdout, self._out = os.dup(self.stdin), os.dup(self._in)

        # Only this side's: the server's own ends stay in blocking mode.
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        self._buffer = b""

    async def send(self, *lines):
        """Write lines in one go."""
        rest = b"".join(lines)
        while rest:
            await anyio.wait_writable(self._out)
            with suppress(BlockingIOError):
                rest = rest[os.write(self._out, rest) :]

    async def receive(self):
        """Read one message."""
        while b"\n" not in self._buffer:
            await anyio.wait_readable(self._in)
            chunk = os.read(self._in, 1 << 20)
            assert chunk, "the server has closed its output"
            self._buffer += chunk

        frame, _, self._buffer = self._buffer.partition(b"\n")
        return orjson.loads(frame)

    async def begun(self):
        """Wait until the server has begun to write, and read nothing of it."""
        await anyio.wait_readable(self._in)

    def close_input(self):
        """Send no more."""
        if self._out is None:
            return

        if self._kind == "socket":
            with socket.socket(fileno=self._out) as sock:
                sock.shutdown(socket.SHUT_WR)
        else:
            os.close(self._out)

        self._out = None

    def stop_reading(self):
        """Read no more."""
        if self._in is not None:
            os.close(self._in)
            self._in = None

    def close(self):
        """Close everything that is still open."""
        self.close_input()
        self.stop_reading()
        os.close(self.stdin)
        os.close(self.stdout)


@asynccontextmanager
async def serving(server, kind="pipe", **options):
    """Serve a peer, and wait at the end until the server is done with it."""
    peer = PipePeer(kind)
    try:
        async with anyio.create_task_group() as group:

            async def run():
                await serve(server, stdin=peer.stdin, stdout=peer.stdout, **options)

            group.start_soon(run)
            await anyio.wait_all_tasks_blocked()
            yield peer
            peer.close_input()
    finally:
        peer.close()
