"""What only legacy clients need: sessions, batches, their streams, and DELETE.

Source: MCP 2025-11-25, basic/transports, "Session Management" and "Resumability and Redelivery".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stanchion import (
    ASSUMED_HTTP_VERSION,
    HEADER_SESSION,
    HEADER_VERSION,
    LEGACY_VERSIONS,
    MODERN_VERSIONS,
    SUPPORTED_VERSIONS,
    Connection,
    Era,
    EventStore,
    InvalidRequest,
    Message,
    Notification,
    Peer,
    Principal,
    Request,
    RequestId,
    Response,
    Server,
    UnsupportedVersion,
)

from .exchange import Exchange, send_fault, send_plain
from .headers import Headers
from .resumable import Resumable
from .sessions import LiveSession, NoLogFloor, Sessions
from .watch import Watch

if TYPE_CHECKING:
    from starlette.types import Send

NOT_FOUND = "Session not found: send initialize without Mcp-Session-Id"
NO_LOG_FLOOR = NoLogFloor()
PATIENCE = 300.0
MISSING = "The header Mcp-Session-Id is required after initialize"


class Legacy:
    """Serves legacy messages, in sessions or without.

    Attributes:
        streams: Whether sessions have streams of their own, opened with GET.
        methods: The HTTP methods that there are, as the field Allow lists them.
    """

    def __init__(
        self,
        server: Server,
        sessions: Sessions | None,
        watch: Watch,
        store: EventStore | None = None,
        *,
        patience: float = PATIENCE,
    ) -> None:
        """Take what sessions are made of.

        Args:
            server: The server.
            sessions: The sessions, or None to serve without any.
            watch: What looks after running exchanges.
            store: What keeps the events of streams, or None where there are no streams.
            patience: Seconds that a call goes on for a client that has gone and not come back.
        """
        self._server = server
        self._sessions = sessions
        self._watch = watch
        self._store = store
        self._patience = patience
        self.streams = sessions is not None and store is not None
        self.methods = b"POST"
        if sessions is not None:
            self.methods = b"GET, POST, DELETE" if self.streams else b"POST, DELETE"

    async def post(
        self, message: Message | list[Any], exchange: Exchange, headers: Headers
    ) -> None:
        """Answer one message, or one batch, of a legacy client.

        Raises:
            Unavailable: Too many sessions are open.
        """
        connection = exchange.connection
        if isinstance(message, Request) and message.method == "initialize":
            await self._initialize(message, exchange, headers)
        elif self._sessions is None or connection.unidentified is not None:
            # Nor is a session looked for where it is not known who asks.
            connection.peer = _stateless_peer(connection, headers)
            connection.log_floor = NO_LOG_FLOOR
            await self._answer(message, exchange, headers)
        elif HEADER_SESSION in headers:
            session = self._sessions.open(headers[HEADER_SESSION], connection.principal)
            if session is None:
                fault = InvalidRequest(NOT_FOUND)
                await exchange.refuse(fault, Era.LEGACY, _id_of(message), status=404)
                return

            session = self._sessions.enter(session)
            try:
                join(session, connection, headers, hears=self.streams)
                if isinstance(exchange, Resumable) and self._store is not None:
                    exchange.bind(session, self._store, patience=self._patience)
                    connection.release = exchange.release

                await self._answer(message, exchange, headers)
            finally:
                self._sessions.leave(session)

        elif isinstance(message, Request) and message.method == "ping":
            await self._answer(message, exchange, headers)
        else:
            await exchange.refuse(InvalidRequest(MISSING), Era.LEGACY, _id_of(message))

    async def delete(self, headers: Headers, principal: Principal | None, send: Send) -> None:
        """End the session that the request names."""
        session = await self.session_of(headers, principal, send)
        if session is not None and self._sessions is not None:
            self._sessions.end(session)
            if self._store is not None:
                await self._store.forget(session.id)

            await send_plain(send, 204)

    async def session_of(
        self, headers: Headers, principal: Principal | None, send: Send
    ) -> LiveSession | None:
        """Give the session that a request without a message names; None once it is refused."""
        version = headers.get(HEADER_VERSION, ASSUMED_HTTP_VERSION)
        if self._sessions is None or version in MODERN_VERSIONS:
            await send_plain(send, 405, b"", (b"allow", b"POST"))
        elif version not in LEGACY_VERSIONS:
            fault = UnsupportedVersion(version, SUPPORTED_VERSIONS)
            await send_fault(send, fault, Era.LEGACY)
        elif HEADER_SESSION not in headers:
            await send_fault(send, InvalidRequest(MISSING), Era.LEGACY)
        elif session := self._sessions.open(headers[HEADER_SESSION], principal):
            return session
        else:
            await send_fault(send, InvalidRequest(NOT_FOUND), Era.LEGACY, status=404)

        return None

    async def _initialize(self, message: Request, exchange: Exchange, headers: Headers) -> None:
        # Without a stream: the session's id must still fit into the answer's header.
        connection = exchange.connection
        connection.hears = self.streams
        reply = await self._server.dispatch(message, connection, headers=headers)
        if connection.peer is not None and self._sessions is not None:
            token = self._sessions.issue(connection.peer, connection.principal)
            exchange.headers = [(HEADER_SESSION.encode(), token.encode())]

        await exchange.finish(reply)

    async def _answer(
        self, message: Message | list[Any], exchange: Exchange, headers: Headers
    ) -> None:
        if isinstance(message, Notification | Response):
            await self._server.dispatch(message, exchange.connection, headers=headers)
            await exchange.accept()
        else:
            await exchange.run(self._server, self._watch, message, headers)


def join(session: LiveSession, connection: Connection, headers: Headers, *, hears: bool) -> None:
    """Make *connection*, of one request, one of *session*."""
    connection.peer = Peer(
        "http",
        session.version,
        client=session.client,
        capabilities=session.capabilities,
        session=session.id,
        address=connection.address,
        headers=headers,
    )
    connection.session = session
    connection.hears = hears
    connection.in_flight = session.in_flight
    connection.log_floor = session.log_floor
    connection.pending = session.pending


def _id_of(message: Message | list[Any]) -> RequestId | None:
    return message.id if isinstance(message, Request) else None


def _stateless_peer(connection: Connection, headers: Headers) -> Peer:
    version = headers.get(HEADER_VERSION, ASSUMED_HTTP_VERSION)
    return Peer(
        "http", version, client={}, capabilities={}, address=connection.address, headers=headers
    )
