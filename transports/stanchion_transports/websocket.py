"""MCP over WebSocket: one connection is one peer, one text frame one message.

No part of the specification, which leaves transports of one's own open. The subprotocol is
`mcp`, as clients know it; pings, and with them the end of dead connections, are uvicorn's.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

from starlette.routing import WebSocketRoute

from stanchion import ConfigurationError, Connection, Refusal, Server, Unavailable, serve_stream

from .http.exchange import turn_away
from .http.guard import LOCAL_HOSTS, Guard, Problem
from .http.headers import Headers
from .http.identity import Authenticate, Identity, send_refusal

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

SUBPROTOCOL = "mcp"

MAX_FRAME = 4 * 1024 * 1024
MAX_CONNECTIONS = 1000

UNSUPPORTED, TOO_LARGE, REFUSED = 1003, 1009, 1008
"""Why a connection is closed (RFC 6455, section 7.4.1)."""

logger = logging.getLogger("stanchion.http")


class WebSocketEndpoint:
    """Serves one server over WebSocket; made by `route`."""

    def __init__(
        self,
        server: Server,
        *,
        guard: Guard,
        authenticate: Authenticate | None,
        max_frame: int,
        max_connections: int,
    ) -> None:
        self._server = server
        self._guard = guard
        self._identity = Identity(server, authenticate)
        self._max_frame = max_frame
        self._max_connections = max_connections
        self._open = 0

    @property
    def open_connections(self) -> int:
        """How many connections are open."""
        return self._open

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection until the client goes away; its calls end with it."""
        await receive()  # websocket.connect
        try:
            connection = await self._admit(scope)
        except Refusal as refusal:
            await send_refusal(_denying(scope, send), refusal)
            return

        if isinstance(connection, Problem):
            await turn_away(_denying(scope, send), connection)
            return

        self._open += 1
        try:
            await send({"type": "websocket.accept", "subprotocol": SUBPROTOCOL})
            socket = _Socket(receive, send, self._max_frame)
            await serve_stream(self._server, connection, socket, socket.write, grace=0)
        finally:
            self._open -= 1

    async def _admit(self, scope: Scope) -> Connection | Problem:
        """Give what is known of the client, or why it may not connect.

        Raises:
            Refusal: Nobody can tell who it is, or no connection is taken.
        """
        headers = Headers(scope["headers"])
        problem = self._guard.check(headers, is_post=False)
        if problem is not None:
            return problem

        if SUBPROTOCOL not in scope.get("subprotocols", ()):
            return Problem(400, f"The subprotocol {SUBPROTOCOL} is required")

        address, port = scope.get("client") or (None, None)
        connection = Connection("websocket", address=address, port=port, headers=headers)
        await self._identity.demand(headers, connection)
        if self._server.draining or self._open >= self._max_connections:
            raise Unavailable("No more connections are taken at the moment", retry_after=1.0)

        return connection


class _Socket:
    """An accepted connection as frames."""

    def __init__(self, receive: Receive, send: Send, max_frame: int) -> None:
        self._receive = receive
        self._send = send
        self._max_frame = max_frame
        self._closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        event = await self._receive()
        text: str | None = event.get("text")
        if event["type"] == "websocket.disconnect":
            self._closed = True
        elif text is None:
            await self._close(UNSUPPORTED, "Messages are text frames")
        elif len(frame := text.encode()) > self._max_frame:
            await self._close(TOO_LARGE, f"A message has at most {self._max_frame} bytes")
        else:
            return frame

        raise StopAsyncIteration

    async def write(self, frame: bytes) -> None:
        """Send one message; drops it if the client has gone."""
        await self._send_event({"type": "websocket.send", "text": frame.decode()})

    async def _close(self, code: int, reason: str) -> None:
        closing = {"type": "websocket.close", "code": code, "reason": reason}
        await self._send_event(closing)
        self._closed = True

    async def _send_event(self, event: Message) -> None:
        if self._closed:
            return

        try:
            await self._send(event)
        except OSError as error:  # as ASGI has it for a client that has gone
            logger.info("a WebSocket broke off: %s", error)
            self._closed = True


def _denying(scope: Scope, send: Send) -> Send:
    """Give a `send` that answers the handshake with an HTTP answer, as far as the server can."""
    if "websocket.http.response" in scope.get("extensions", {}):

        async def send_denial(event: Message) -> None:
            await send({**event, "type": f"websocket.{event['type']}"})

        return send_denial

    async def close(event: Message) -> None:
        if event["type"] == "http.response.start":
            await send({"type": "websocket.close", "code": REFUSED})

    return close


def route(
    server: Server,
    path: str = "/ws",
    *,
    allowed_hosts: Iterable[str] = LOCAL_HOSTS,
    allowed_origins: Iterable[str] = (),
    authenticate: Authenticate | None = None,
    max_frame: int = MAX_FRAME,
    max_connections: int = MAX_CONNECTIONS,
) -> WebSocketRoute:
    """Make a Starlette route that serves *server* over WebSocket.

    `http.app(server, websocket_path="/ws")` makes one beside Streamable HTTP; any other
    application that has this route must start the server in its life. uvicorn needs a WebSocket
    library: `stanchion[websocket]` brings one.

    Args:
        server: The server.
        path: Where clients connect.
        allowed_hosts: As for `http.app`.
        allowed_origins: As for `http.app`; browsers send no preflight here, so this is all that
            keeps other pages out.
        authenticate: As for `http.app`; asked once, for the connection.
        max_frame: Bytes that a message may have; one that has more ends the connection.
        max_connections: Connections that may be open; more are answered 503.

    Raises:
        ConfigurationError: *path* does not start with a slash, or a number is not positive.
    """
    if not path.startswith("/"):
        raise ConfigurationError(f"path must start with a slash: {path!r}")

    if max_frame < 1 or max_connections < 1:
        raise ConfigurationError("max_frame and max_connections must be positive")

    endpoint: Any = WebSocketEndpoint(
        server,
        guard=Guard(allowed_hosts, allowed_origins),
        authenticate=authenticate,
        max_frame=max_frame,
        max_connections=max_connections,
    )
    return WebSocketRoute(path, endpoint)
