"""A server to test with, and a client that says exactly the bytes that a test wants said."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import orjson
from anyio.streams.buffered import BufferedByteReceiveStream

from stanchion import (
    LEGACY_VERSIONS,
    SUPPORTED_VERSIONS,
    Call,
    Principal,
    Server,
    ToolError,
    Unauthenticated,
)
from stanchion_testing import Judge
from stanchion_transports.http import serve

MODERN = "2026-07-28"
LEGACY = "2025-11-25"

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}
MEDIA = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


class Desk:
    """A server whose tools the tests hold in their hands."""

    def __init__(self, **options):  # noqa: C901 # it is a list of tools
        self.server = Server("desk", "1", **options)
        self.started = anyio.Event()
        self.release = anyio.Event()
        self.cancelled = []

        @self.server.tool
        async def echo(text: str) -> str:
            return text

        @self.server.tool
        async def hold(call: Call, name: str = "hold", told: bool = False) -> str:
            if told:
                await call.progress(1)

            self.started.set()
            try:
                await self.release.wait()
            except anyio.get_cancelled_exc_class():
                self.cancelled.append(name)
                raise

            return f"{name} released"

        @self.server.tool
        async def steps(call: Call, count: int) -> str:
            for step in range(1, count + 1):
                await call.progress(step, count)

            return "done"

        @self.server.tool
        async def late(call: Call) -> str:
            await call.progress(1)
            raise ToolError("too late for a status")

        @self.server.tool
        async def big(size: int) -> str:
            return "x" * size

        @self.server.tool
        async def leave() -> str:
            sys.exit(3)

        @self.server.tool
        def leave_in_thread() -> str:
            sys.exit(3)

        @self.server.tool
        async def who(call: Call) -> str:
            return "nobody" if call.principal is None else call.principal.subject


def tool_call(tool, /, *, id=1, progress=None, headers=None, **arguments):
    """Make a modern tool call, as header fields and a body."""
    params = {"name": tool, "arguments": arguments}
    fields = {"mcp-name": tool} | (headers or {})
    return modern("tools/call", params, id=id, progress=progress, headers=fields)


def modern(method, params=None, *, id=1, progress=None, headers=None):
    """Make a modern request, as header fields and a body."""
    meta = ENVELOPE if progress is None else {**ENVELOPE, "progressToken": progress}
    message = {"id": id, "method": method, "params": {**(params or {}), "_meta": meta}}
    fields = {"mcp-protocol-version": MODERN, "mcp-method": method} | (headers or {})
    return fields, body_of(**message)


def legacy_call(tool, /, *, id=1, progress=None, **arguments):
    """Make the body of a legacy tool call."""
    params = {"name": tool, "arguments": arguments}
    if progress is not None:
        params["_meta"] = {"progressToken": progress}

    return body_of(id=id, method="tools/call", params=params)


def initialize(version=LEGACY, **client):
    """Make the body that starts a legacy session."""
    client = {"name": "peer", "version": "1"} | client
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
    return body_of(id=0, method="initialize", params=params)


def body_of(**message):
    """Make the body of a message."""
    return orjson.dumps({"jsonrpc": "2.0", **message})


@dataclass
class Answer:
    """An HTTP answer; `body` is b"" while a stream's events are still to come."""

    status: int
    headers: dict
    body: bytes = b""

    @property
    def json(self):
        """The body as a JSON-RPC message."""
        assert self.headers["content-type"] == "application/json"
        return orjson.loads(self.body)

    @property
    def error(self):
        """The code of the error that it carries."""
        return self.json["error"]["code"]

    @property
    def text(self):
        """The text of a tool's result, sent as JSON or as the last event of a stream."""
        if self.headers["content-type"] == "application/json":
            return self.json["result"]["content"][0]["text"]

        return self.events[-1]["result"]["content"][0]["text"]

    @property
    def events(self):
        """The messages of an event stream that was read to its end; None for a comment."""
        assert self.headers["content-type"] == "text/event-stream"
        blocks = self.body.split(b"\n\n")[:-1]
        silent = (b"data: ", b"retry: 250")
        return [event_of(block) for block in blocks if not block.endswith(silent)]

    @property
    def ids(self):
        """The ids of the events, in order."""
        return ids_of(self.body)


def event_of(chunk):
    """Read the last event of a chunk, or None for a comment."""
    block = chunk.removesuffix(b"\n\n").split(b"\n\n")[-1]
    if block.startswith(b":"):
        return None

    *fields, payload = block.split(b"\n")
    assert fields[-1] == b"event: message"
    assert all(field.startswith(b"id: ") for field in fields[:-1])
    assert payload.startswith(b"data: ")
    return orjson.loads(payload.removeprefix(b"data: "))


def ids_of(chunk):
    """Give the ids of the events of a chunk, in order."""
    lines = chunk.decode().split("\n")
    return [line.removeprefix("id: ") for line in lines if line.startswith("id: ")]


class Wire:
    """One connection: requests and answers in HTTP/1.1, byte for byte.

    Every whole answer that is read is judged by the official models of the protocol.
    """

    def __init__(self, stream, path):
        self.stream = stream
        self.path = path
        self._judge = Judge(LEGACY)
        self._reading = BufferedByteReceiveStream(stream)

    async def send(self, fields=None, body=b"", *, method="POST", path=None, repeated=()):
        """Send one request; a field that is None is left out."""
        wanted = {"host": "localhost", "content-length": str(len(body))}
        wanted |= MEDIA if method == "POST" else {}
        wanted |= fields or {}
        self._note(wanted, body)
        lines = [f"{method} {path or self.path} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in wanted.items() if value is not None]
        lines += [f"{name}: {value}" for name, value in repeated]
        await self.stream.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)

    async def ask(self, fields=None, body=b"", **options):
        """Send one request and read its whole answer."""
        await self.send(fields, body, **options)
        return await self.answer(no_body=options.get("method") == "HEAD")

    async def answer(self, *, no_body=False):
        """Read a whole answer."""
        answer = await self.head()
        if no_body:
            return answer

        if answer.headers.get("transfer-encoding") == "chunked":
            while chunk := await self.chunk():
                answer.body += chunk
        elif length := int(answer.headers.get("content-length", "0")):
            answer.body = await self._reading.receive_exactly(length)

        self._hold(answer)
        return answer

    def _note(self, fields, body):
        """Note what is asked, if it is JSON at all."""
        try:
            message = orjson.loads(body)
        except orjson.JSONDecodeError:
            return

        match message:
            case {"method": "initialize", "params": {"protocolVersion": str(version)}}:
                self._judge.version = version if version in LEGACY_VERSIONS else LEGACY
            case _:
                version = fields.get("mcp-protocol-version")
                if version in SUPPORTED_VERSIONS:
                    self._judge.version = version

        self._judge.sent(message)

    def _hold(self, answer):
        """Have the messages of a whole answer judged."""
        kind = answer.headers.get("content-type")
        if kind == "text/event-stream":
            messages = [event for event in answer.events if event is not None]
        else:
            messages = [orjson.loads(answer.body)] if kind == "application/json" else []

        for message in messages:
            for each in message if isinstance(message, list) else [message]:
                if "jsonrpc" in each:  # and not a document of another kind
                    self._judge.received(each)

    async def head(self):
        """Read an answer's status and header fields."""
        head = await self._reading.receive_until(b"\r\n\r\n", 1 << 16)
        status, *lines = head.decode("latin-1").split("\r\n")
        fields = (line.partition(": ") for line in lines)
        return Answer(int(status.split()[1]), {name.lower(): value for name, _, value in fields})

    async def chunk(self):
        """Read one chunk of a stream; empty at its end."""
        size = int(await self._reading.receive_until(b"\r\n", 32), 16)
        chunk = await self._reading.receive_exactly(size) if size else b""
        await self._reading.receive_exactly(2)
        return chunk

    async def start_session(self, version=LEGACY, **client):
        """Start a legacy session and give the header fields that belong to it."""
        answer = await self.ask({}, initialize(version, **client))
        assert answer.status == 200, answer.body
        return {"mcp-session-id": answer.headers["mcp-session-id"], "mcp-protocol-version": version}

    async def exactly(self, count):
        """Read *count* bytes of a body."""
        return await self._reading.receive_exactly(count)

    async def close(self):
        """Close the connection."""
        await self.stream.aclose()


@asynccontextmanager
async def serving(server, **options):
    """Serve, and give an `async with connect() as wire`."""
    async with anyio.create_task_group() as group:
        start = group.start

        async def run(*, task_status):
            await serve(server, port=0, task_status=task_status, **options)

        yield connector(await start(run))
        group.cancel_scope.cancel()


def connector(url):
    """Give a function that opens connections to *url*."""
    address, _, path = url.removeprefix("http://").partition("/")
    host, _, port = address.rpartition(":")

    @asynccontextmanager
    async def connect():
        async with await anyio.connect_tcp(host.strip("[]"), int(port)) as stream:
            yield Wire(stream, "/" + path)

    connect.url = url
    return connect


async def by_token(headers):
    """Take the bearer token for the subject; what `authenticate=` may be."""
    scheme, _, subject = headers.get("authorization", "").partition(" ")
    if scheme != "Bearer":
        raise Unauthenticated("a token is required", challenge='Bearer realm="desk"')

    return Principal(subject)
