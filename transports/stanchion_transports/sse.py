"""HTTP+SSE, the transport of 2024-11-05 for clients that know no other; deprecated since.

    GET  /sse                         a stream: where to post, then every message to the client
    POST /messages?session_id=…       a message from the client; 202 at once, answered there

A session is its stream: when the one ends, so do the other and the calls that run in it.

Source: MCP 2024-11-05, basic/transports, "HTTP with SSE".
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Self, TypeAlias
from urllib.parse import quote

import anyio
from starlette.applications import Starlette
from starlette.routing import BaseRoute, Route

from stanchion import (
    ConfigurationError,
    Connection,
    Principal,
    Refusal,
    Server,
    Unavailable,
    serve_stream,
)

from .http.body import read_rest
from .http.documents import Documents
from .http.exchange import STREAM_HEADERS, send_plain, turn_away
from .http.guard import LOCAL_HOSTS, Guard, Problem
from .http.headers import Headers
from .http.identity import Authenticate, Identity, send_refusal

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

MAX_BODY = 4 * 1024 * 1024
MAX_SESSIONS = 1000
KEEP_ALIVE = 15.0
"""Seconds; proxies cut streams that are silent for 30 to 60."""

FRAME_COST = 1024
"""Bytes that each waiting message counts for at least, so that tiny ones are bounded, too."""

NOT_FOUND = Problem(404, "Session not found: its stream has ended, or never was")

_Posted: TypeAlias = "tuple[bytes, Principal | None]"
_Serve: TypeAlias = "Callable[[Scope, Headers, Receive, Send], Awaitable[None]]"


class SseApp:
    """A server as an ASGI application of the old transport; made by `app`.

    Attributes:
        server: The server.
        routes: Its two routes, to be served beside Streamable HTTP or in any Starlette
            application whose life starts the server.
    """

    def __init__(
        self,
        server: Server,
        *,
        guard: Guard,
        authenticate: Authenticate | None,
        path: str,
        messages_path: str,
        max_body: int,
        max_sessions: int,
        keep_alive: float,
    ) -> None:
        self.server = server
        self.routes: list[BaseRoute] = [
            Route(path, _At(self._checked, "GET", self._stream)),
            Route(messages_path, _At(self._checked, "POST", self._message)),
        ]
        self._around = Starlette(routes=[*self.routes, Documents(server)], lifespan=self.lifespan)
        self._guard = guard
        self._identity = Identity(server, authenticate)
        self._messages_path = messages_path
        self._max_body = max_body
        self._max_sessions = max_sessions
        self._keep_alive = keep_alive
        self._sessions: dict[str, _Session] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one ASGI connection, at these routes alone."""
        await self._around(scope, receive, send)

    @asynccontextmanager
    async def lifespan(self, app: Any = None) -> AsyncGenerator[None]:
        """Start the server and stop it at the end; for an outer application's `lifespan=`."""
        async with self.server:
            yield

    @property
    def open_sessions(self) -> int:
        """How many streams are open."""
        return len(self._sessions)

    async def _checked(
        self, method: str, serve: _Serve, scope: Scope, receive: Receive, send: Send
    ) -> None:
        headers = Headers(scope["headers"])
        problem = self._guard.check(headers, is_post=scope["method"] == "POST")
        if problem is not None:
            await turn_away(send, problem)
        elif scope["method"] != method:
            await send_plain(send, 405, b"", (b"allow", method.encode()))
        else:
            try:
                await serve(scope, headers, receive, send)
            except Refusal as refusal:
                await send_refusal(send, refusal)

    async def _stream(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        connection = _connection(scope, headers)
        await self._identity.demand(headers, connection)
        if self.server.draining or len(self._sessions) >= self._max_sessions:
            raise Unavailable("No more streams are opened at the moment", retry_after=1.0)

        id = secrets.token_urlsafe(32)
        # A slow stream holds its client up; what it may still post meanwhile is bounded.
        session = _Session(connection, send, max_waiting=4 * self._max_body)
        self._sessions[id] = session
        try:
            root = quote(scope.get("root_path", ""))
            await session.run(
                self.server,
                receive,
                f"{root}{self._messages_path}?session_id={id}",
                self._keep_alive,
            )
        finally:
            del self._sessions[id]

    async def _message(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        connection = _connection(scope, headers)
        await self._identity.demand(headers, connection)
        principal = connection.principal
        query: bytes = scope["query_string"]
        session = self._sessions.get(query.removeprefix(b"session_id=").decode("latin-1"))
        if session is None or _identity(session.connection.principal) != _identity(principal):
            await turn_away(send, NOT_FOUND)
            return

        body = await read_rest(b"", headers, receive, self._max_body)
        if isinstance(body, Problem):
            await turn_away(send, body)
        elif session.ended:  # while the body came
            await turn_away(send, NOT_FOUND)
        elif not session.take(body, principal):
            raise Unavailable("Too much waits to be read from this client", retry_after=1.0)
        else:
            await send_plain(send, 202)


class _At:
    """An object, because Starlette takes a function for one of requests, not of ASGI."""

    def __init__(self, checked: Callable[..., Awaitable[None]], method: str, serve: _Serve) -> None:
        self._checked = checked
        self._method = method
        self._serve = serve

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._checked(self._method, self._serve, scope, receive, send)


class _Session:
    """One client's stream: gives its messages to the server, and writes what that answers."""

    def __init__(self, connection: Connection, send: Send, *, max_waiting: int) -> None:
        self.connection = connection
        self.ended = False
        self._send = send
        self._max_waiting = max_waiting
        self._waiting = 0
        self._arrived, self._frames = anyio.create_memory_object_stream[_Posted](float("inf"))
        self._writing = anyio.Lock(fast_acquire=True)
        self._written_at = 0.0

    async def run(self, server: Server, receive: Receive, endpoint: str, keep_alive: float) -> None:
        """Serve until the client goes away; then cancel the calls that still run."""
        headers = list(STREAM_HEADERS)
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._write(b"event: endpoint\ndata: " + endpoint.encode() + b"\n\n")
        try:
            async with anyio.create_task_group() as group:

                async def until_gone() -> None:
                    while (await receive())["type"] != "http.disconnect":
                        pass

                    self.ended = True
                    group.cancel_scope.cancel()

                group.start_soon(until_gone)
                group.start_soon(self._show_life, keep_alive)
                await serve_stream(server, self.connection, self, self._write_frame)
        finally:
            self.ended = True
            self._arrived.close()
            self._frames.close()

    def take(self, frame: bytes, principal: Principal | None) -> bool:
        """Keep *frame* until the server reads it; False if too much is waiting already.

        *principal* has posted it: whoever opened the stream, but what it has proved, such as its
        scopes, may have changed since.
        """
        cost = max(len(frame), FRAME_COST)
        if self._waiting + cost > self._max_waiting:
            return False

        self._waiting += cost
        self._arrived.send_nowait((frame, principal))
        return True

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        frame, self.connection.principal = await self._frames.receive()
        self._waiting -= max(len(frame), FRAME_COST)
        return frame

    async def _write_frame(self, frame: bytes) -> None:
        await self._write(b"event: message\ndata: " + frame + b"\n\n")

    async def _write(self, chunk: bytes) -> None:
        async with self._writing:
            await self._send({"type": "http.response.body", "body": chunk, "more_body": True})
            self._written_at = anyio.current_time()

    async def _show_life(self, keep_alive: float) -> None:
        while True:
            await anyio.sleep_until(self._written_at + keep_alive)
            if anyio.current_time() >= self._written_at + keep_alive:
                # Behind a frame that the client is slow to read, this waits like everything.
                await self._write(b": still here\n\n")


def _connection(scope: Scope, headers: Headers) -> Connection:
    address, port = scope.get("client") or (None, None)
    version = scope.get("http_version")
    return Connection("sse", address=address, port=port, http_version=version, headers=headers)


def _identity(principal: Principal | None) -> tuple[str | None, str | None, str] | None:
    return None if principal is None else principal.identity


def app(
    server: Server,
    *,
    path: str = "/sse",
    messages_path: str = "/messages",
    allowed_hosts: Iterable[str] = LOCAL_HOSTS,
    allowed_origins: Iterable[str] = (),
    authenticate: Authenticate | None = None,
    max_body: int = MAX_BODY,
    max_sessions: int = MAX_SESSIONS,
    keep_alive: float = KEEP_ALIVE,
) -> SseApp:
    """Make the ASGI application that serves *server* over HTTP+SSE.

    To serve it beside Streamable HTTP: `http.serve(server, routes=sse.app(server).routes)`.

    Args:
        server: The server; the application's lifespan starts it.
        path: Where the stream is.
        messages_path: Where messages are posted; clients are told it below the prefix that the
            application is mounted at.
        allowed_hosts: As for `http.app`.
        allowed_origins: As for `http.app`.
        authenticate: As for `http.app`; who posts must be who opened the stream.
        max_body: Bytes that a message may have; more is answered 413. Messages that the server
            has not read yet may take four times that in each session; more is answered 503.
        max_sessions: Streams that may be open; more are answered 503.
        keep_alive: Seconds of silence after which a comment is sent.

    Raises:
        ConfigurationError: A path does not start with a slash, both are the same, or a number is
            not positive.
    """
    if not (path.startswith("/") and messages_path.startswith("/")) or path == messages_path:
        raise ConfigurationError("path and messages_path must differ and start with a slash")

    if max_body < 1 or max_sessions < 1 or keep_alive <= 0:
        raise ConfigurationError("max_body, max_sessions and keep_alive must be positive")

    return SseApp(
        server,
        guard=Guard(allowed_hosts, allowed_origins, streams=False),
        authenticate=authenticate,
        path=path,
        messages_path=messages_path,
        max_body=max_body,
        max_sessions=max_sessions,
        keep_alive=keep_alive,
    )
