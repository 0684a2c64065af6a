"""One client for tests that ask the same over every transport, in either era."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import orjson

from stanchion import Principal
from stanchion_transports.http import app
from stanchion_transports.memory import open_memory

from .http.peer import ENVELOPE, LEGACY, body_of, event_of, initialize, modern, serving
from .pipe_peer import serving as serving_pipe
from .sse_peer import serving_sse
from .websocket_peer import connected

INITIALIZE = orjson.loads(initialize())["params"]
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
KINDS = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")
NAMED = ("tools/call", "prompts/get", "resources/read")


@dataclass(frozen=True)
class Caller:
    """Who asks: what its requests say over HTTP, and what a transport without requests knows."""

    authorization: str | None = None
    principal: Principal | None = None
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def fields(self):
        """Its header fields."""
        proof = {} if self.authorization is None else {"authorization": self.authorization}
        return {**proof, **self.more}


class OverHttp:
    """Asks over Streamable HTTP; a stranger has no session, whatever id he sends.

    Attributes:
        answer: The last answer as HTTP has it.
        begun: The answer to the legacy handshake.
    """

    def __init__(self, connect, wire, fields, era):
        self.connect, self.wire, self.fields, self.era = connect, wire, fields, era
        self.answer = self.begun = None

    async def start(self):
        """Start a legacy session, if the server lets us."""
        self.answer = await self.wire.ask(self.fields, initialize())
        self.begun = self.answer.json
        session = self.answer.headers.get("mcp-session-id")
        assert (session is None) == ("error" in self.begun)
        self.fields = self.fields | {"mcp-protocol-version": LEGACY}
        self.fields |= {} if session is None else {"mcp-session-id": session}

    async def ask(self, method, params):
        """Give the message that answers."""
        if self.era == "modern":
            name = params.get("name", params.get("uri"))
            named = {"mcp-name": name} if method in NAMED else {}
            self.answer = await self.wire.ask(*modern(method, params, headers=self.fields | named))
        else:
            body = body_of(id=1, method=method, params=params)
            self.answer = await self.wire.ask(self.fields, body)

        return self.answer.json

    @property
    def seen(self):
        """What else an answer tells: its status and its header fields."""
        fields = {key: each for key, each in self.answer.headers.items() if key != "date"}
        return self.answer.status, fields

    @asynccontextmanager
    async def listening(self, *uris):
        """Hear of lists and of *uris*; give what is granted, and what waits for a message."""

        async def hear():
            return event_of(await wire.chunk())

        async with self.connect() as wire:
            if self.era == "modern":
                asked = dict.fromkeys(KINDS, True) | {"resourceSubscriptions": [*uris]}
                params = {"notifications": asked}
                await wire.send(*modern("subscriptions/listen", params, headers=self.fields))
                assert (await wire.head()).status == 200
                yield (await hear())["params"]["notifications"], hear
                return

            await wire.send(self.fields | {"accept": "text/event-stream"}, method="GET")
            assert (await wire.head()).status == 200
            await wire.chunk()
            yield None, hear


class OverStream:
    """Asks over a connection whose frames go both ways."""

    seen = None

    def __init__(self, send, receive, era):
        self.send, self.receive, self.era = send, receive, era
        self.begun = None
        self.told = []

    async def start(self):
        """Shake hands."""
        self.begun = await self.ask("initialize", INITIALIZE)

    async def ask(self, method, params):
        """Give the message that answers."""
        await self._send(1, method, params)
        while True:
            message = orjson.loads(await self.receive())
            if message.get("id") == 1:
                return message

            self.told.append(message)

    async def _send(self, id, method, params):
        if self.era == "modern":
            params = params | {"_meta": ENVELOPE}

        await self.send(body_of(id=id, method=method, params=params))

    @asynccontextmanager
    async def listening(self, *uris):
        """Hear of lists and of *uris*; give what is granted, and what waits for a message."""

        async def hear():
            return self.told.pop(0) if self.told else orjson.loads(await self.receive())

        granted = None
        if self.era == "modern":
            asked = dict.fromkeys(KINDS, True) | {"resourceSubscriptions": [*uris]}
            await self._send("ears", "subscriptions/listen", {"notifications": asked})
            acknowledged = await hear()
            assert acknowledged["method"] == ACKNOWLEDGED
            granted = acknowledged["params"]["notifications"]

        yield granted, hear


async def _begun(asking):
    if asking.era == "legacy":
        await asking.start()

    return asking


@asynccontextmanager
async def over_http(server, caller, era):
    """Over Streamable HTTP, on a real socket."""
    async with serving(server) as connect, connect() as wire:
        yield await _begun(OverHttp(connect, wire, caller.fields, era))


@asynccontextmanager
async def over_websocket(server, caller, era):
    """Over WebSocket, as ASGI has it."""
    application = app(server, websocket_path="/ws")
    async with application.lifespan(), connected(application, **caller.fields) as client:
        yield await _begun(OverStream(client.send, client.receive, era))


@asynccontextmanager
async def over_sse(server, caller, era):
    """Over HTTP+SSE, on real sockets."""
    async with serving_sse(server) as connect, connect(**caller.fields) as client:

        async def post(body):
            assert (await client.post(body, **caller.fields)).status == 202

        yield await _begun(OverStream(post, client.message, era))


@asynccontextmanager
async def over_memory(server, caller, era):
    """Over a connection in memory, whose principal the transport has found."""
    async with open_memory(server, principal=caller.principal) as stream:
        yield await _begun(OverStream(stream.send, stream.receive, era))


@asynccontextmanager
async def over_stdio(server, caller, era):
    """Over pipes; who calls, the server must find in its environment."""
    async with serving_pipe(server) as peer:

        async def send(frame):
            await peer.send(frame + b"\n")

        async def receive():
            return orjson.dumps(await peer.receive())

        yield await _begun(OverStream(send, receive, era))


WAYS = {
    "http modern": (over_http, "modern"),
    "http legacy": (over_http, "legacy"),
    "sse": (over_sse, "legacy"),
    "websocket modern": (over_websocket, "modern"),
    "websocket legacy": (over_websocket, "legacy"),
    "memory modern": (over_memory, "modern"),
    "memory legacy": (over_memory, "legacy"),
    "stdio modern": (over_stdio, "modern"),
    "stdio legacy": (over_stdio, "legacy"),
}


def connect(way, server, caller):
    """Connect over *way*, one of `WAYS`."""
    opening, era = WAYS[way]
    return opening(server, caller, era)
