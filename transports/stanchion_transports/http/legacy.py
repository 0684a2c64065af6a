"""What only legacy clients need: sessions, batches, and DELETE.

Source: MCP 2025-11-25, basic/transports, "Session Management".
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
from .sessions import NoLogFloor, Session, Sessions
from .watch import Watch

if TYPE_CHECKING:
    from starlette.types import Send

NOT_FOUND = "Session not found: send initialize without Mcp-Session-Id"
NO_LOG_FLOOR = NoLogFloor()
MISSING = "The header Mcp-Session-Id is required after initialize"


class Legacy:
    """Serves legacy messages, in sessions or without.

    Attributes:
        methods: The HTTP methods that there are, as the field Allow lists them.
    """

    def __init__(self, server: Server, sessions: Sessions | None, watch: Watch) -> None:
        self._server = server
        self._sessions = sessions
        self._watch = watch
        self.methods = b"POST" if sessions is None else b"POST, DELETE"

    async def post(
        self, message: Message | list[Any], exchange: Exchange, headers: Headers
    ) -> None:
        """Answer one message, or one batch, of a legacy client."""
        connection = exchange.connection
        if isinstance(message, Request) and message.method == "initialize":
            await self._initialize(message, exchange, headers)
        elif self._sessions is None:
            connection.peer = _stateless_peer(connection, headers)
            connection.log_floor = NO_LOG_FLOOR
            await self._answer(message, exchange, headers)
        elif HEADER_SESSION in headers:
            session = self._sessions.open(headers[HEADER_SESSION], connection.principal)
            if session is None:
                fault = InvalidRequest(NOT_FOUND)
                await exchange.refuse(fault, Era.LEGACY, _id_of(message), status=404)
            else:
                self._sessions.enter(session)
                connection.peer = _session_peer(session, connection, headers)
                connection.in_flight = session.in_flight
                connection.log_floor = session.log_floor
                connection.pending = session.pending
                try:
                    await self._answer(message, exchange, headers)
                finally:
                    self._sessions.leave(session)

        elif isinstance(message, Request) and message.method == "ping":
            await self._answer(message, exchange, headers)
        else:
            await exchange.refuse(InvalidRequest(MISSING), Era.LEGACY, _id_of(message))

    async def delete(self, headers: Headers, principal: Principal | None, send: Send) -> None:
        """End the session that the request names."""
        version = headers.get(HEADER_VERSION, ASSUMED_HTTP_VERSION)
        if self._sessions is None or version in MODERN_VERSIONS:
            await send_plain(send, 405, b"", (b"allow", b"POST"))
        elif version not in LEGACY_VERSIONS:
            fault = UnsupportedVersion(version, SUPPORTED_VERSIONS)
            await send_fault(send, fault, Era.LEGACY)
        elif HEADER_SESSION not in headers:
            await send_fault(send, InvalidRequest(MISSING), Era.LEGACY)
        elif session := self._sessions.open(headers[HEADER_SESSION], principal):
            self._sessions.end(session)
            await send_plain(send, 204)
        else:
            await send_fault(send, InvalidRequest(NOT_FOUND), Era.LEGACY, status=404)

    async def _initialize(self, message: Request, exchange: Exchange, headers: Headers) -> None:
        # Without a stream: the session's id must still fit into the answer's header.
        connection = exchange.connection
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


def _id_of(message: Message | list[Any]) -> RequestId | None:
    return message.id if isinstance(message, Request) else None


def _session_peer(session: Session, connection: Connection, headers: Headers) -> Peer:
    return Peer(
        "http",
        session.version,
        client=session.client,
        capabilities=session.capabilities,
        session=session.nonce,
        address=connection.address,
        headers=headers,
    )


def _stateless_peer(connection: Connection, headers: Headers) -> Peer:
    version = headers.get(HEADER_VERSION, ASSUMED_HTTP_VERSION)
    return Peer(
        "http", version, client={}, capabilities={}, address=connection.address, headers=headers
    )
