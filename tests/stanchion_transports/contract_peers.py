"""Each transport's client end, as `check_transport` wants it opened."""

from __future__ import annotations

import tempfile
from contextlib import asynccontextmanager
from urllib.parse import unquote, urlsplit

import anyio
import orjson

from stanchion_testing import TransportPeer
from stanchion_transports.http import app, serve
from stanchion_transports.memory import open_memory

from .http.peer import Wire
from .pipe_peer import serving as serving_pipes
from .sse_peer import serving_sse
from .websocket_peer import connected


class MemoryPeer(TransportPeer):
    """The end of a stream in memory that holds no frame back."""

    def __init__(self, stream):
        self._stream = stream

    async def send(self, frame):
        await self._stream.send(frame)

    async def receive(self):
        return await self._stream.receive()

    async def disconnect(self):
        await self._stream.aclose()


@asynccontextmanager
async def memory(server):
    """Frames in memory, without a buffer."""
    async with open_memory(server, max_buffered=0) as stream:
        yield MemoryPeer(stream)


class LinePeer(TransportPeer):
    """The end of two pipes, or of one socket."""

    def __init__(self, pipe):
        self._pipe = pipe

    async def send(self, frame):
        await self._pipe.send(frame + b"\n")

    async def receive(self):
        return orjson.dumps(await self._pipe.receive())

    async def disconnect(self):
        self._pipe.stop_reading()
        self._pipe.close_input()


@asynccontextmanager
async def pipes(server):
    """The stdio transport over pipes."""
    async with serving_pipes(server) as pipe:
        yield LinePeer(pipe)


@asynccontextmanager
async def stdio_socket(server):
    """The stdio transport over one socket."""
    async with serving_pipes(server, "socket") as pipe:
        yield LinePeer(pipe)


class HttpPeer(TransportPeer):
    """A client that opens a connection for each message, and reads none that it need not."""

    def __init__(self, open_wire, group):
        self._open_wire = open_wire
        self._group = group
        self._session = {}
        self._wires = {}
        self._wanted = anyio.Event()
        self._arrived, self._frames = anyio.create_memory_object_stream(float("inf"))

    async def send(self, frame):
        fields, id = self._describe(frame)
        wire = await self._open_wire()
        self._wires[id] = wire
        await wire.send(fields, frame)
        self._group.start_soon(self._read, wire)

    async def receive(self):
        self._wanted.set()
        try:
            return await self._frames.receive()
        finally:
            self._wanted = anyio.Event()

    async def cancel(self, id, notification):
        if self._session:
            await self.send(notification)
        else:
            await self._wires.pop(id).close()

    async def disconnect(self):
        for wire in self._wires.values():
            await wire.close()

    async def end(self):
        if self._session:
            wire = await self._open_wire()
            await wire.ask(self._session, method="DELETE")
            await wire.close()

    async def close(self):
        """Close what is open on this side."""
        await self.disconnect()
        self._arrived.close()
        self._frames.close()

    def _describe(self, frame):
        try:
            message = orjson.loads(frame)
        except ValueError:
            return self._session, None

        params = message.get("params", {})
        if "io.modelcontextprotocol/protocolVersion" not in params.get("_meta", {}):
            return self._session, message.get("id") or message["method"]

        version = params["_meta"]["io.modelcontextprotocol/protocolVersion"]
        fields = {"mcp-protocol-version": version, "mcp-method": message["method"]}
        if "name" in params:
            fields["mcp-name"] = params["name"]

        return fields, message.get("id", message["method"])

    async def _read(self, wire):
        try:
            await self._wanted.wait()
            head = await wire.head()
            if session := head.headers.get("mcp-session-id"):
                self._session = {"mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}

            if head.headers.get("content-type") == "text/event-stream":
                await self._read_events(wire)
            elif int(head.headers["content-length"]):
                self._arrived.send_nowait(await wire.exactly(int(head.headers["content-length"])))
        except (anyio.IncompleteRead, anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass  # cancelled, or gone with the server

    async def _read_events(self, wire):
        rest = b""
        while chunk := await wire.chunk():
            *events, rest = (rest + chunk).split(b"\n\n")
            for event in events:
                if frame := event.partition(b"data: ")[2]:
                    self._arrived.send_nowait(frame)

            await self._wanted.wait()


@asynccontextmanager
async def http(server):
    """Streamable HTTP on a port."""
    async with served(server, port=0) as peer:
        yield peer


@asynccontextmanager
async def http_unix(server):
    """Streamable HTTP on a Unix socket."""
    # Not pytest's own folder, whose name may be longer than a socket's path may be.
    with tempfile.TemporaryDirectory() as folder:
        async with served(server, unix_socket=f"{folder}/socket") as peer:
            yield peer


@asynccontextmanager
async def http_json_only(server):
    """HTTP without streams."""
    async with served(server, port=0, json_only=True) as peer:
        yield peer


@asynccontextmanager
async def served(server, **options):
    """Serve over HTTP, and give a client."""
    async with anyio.create_task_group() as group:

        async def run(*, task_status):
            await serve(server, task_status=task_status, **options)

        url = urlsplit(await group.start(run))

        async def open_wire():
            if url.scheme == "http+unix":
                stream = await anyio.connect_unix(unquote(url.netloc))
            else:
                stream = await anyio.connect_tcp("127.0.0.1", url.port)

            return Wire(stream, url.path)

        peer = HttpPeer(open_wire, group)
        yield peer
        await peer.close()
        group.cancel_scope.cancel()


class StreamedPeer(TransportPeer):
    """A client of HTTP+SSE."""

    def __init__(self, client):
        self._client = client

    async def send(self, frame):
        assert (await self._client.post(frame)).status == 202

    async def receive(self):
        return await self._client.message()

    async def disconnect(self):
        await self._client.close()


@asynccontextmanager
async def sse(server):
    """HTTP+SSE on real sockets."""
    async with serving_sse(server) as connect, connect() as client:
        yield StreamedPeer(client)


class SocketPeer(TransportPeer):
    """A WebSocket client."""

    def __init__(self, client):
        self._client = client

    async def send(self, frame):
        await self._client.send(frame)

    async def receive(self):
        return await self._client.receive()

    async def disconnect(self):
        self._client.vanish()


@asynccontextmanager
async def websocket(server):
    """WebSocket as ASGI has it."""
    application = app(server, websocket_path="/ws")
    async with application.lifespan(), connected(application) as client:
        yield SocketPeer(client)
