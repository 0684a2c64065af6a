"""The endpoint: one POST for every message of either era, and GET and DELETE for sessions.

Raw ASGI, because this is the hot path: headers are walked once, the body is read once, and
nothing is built that the request does not need.

Source: MCP 2025-11-25 and 2026-07-28, basic/transports, "Streamable HTTP".
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from stanchion import (
    ASSUMED_HTTP_VERSION,
    HEADER_VERSION,
    LEGACY_VERSIONS,
    MODERN_VERSIONS,
    SUPPORTED_VERSIONS,
    ConfigurationError,
    Connection,
    Era,
    HeaderMismatch,
    InvalidRequest,
    Message,
    Notification,
    ProtocolError,
    Refusal,
    Request,
    Response,
    Server,
    Unavailable,
    UnsupportedVersion,
    decode,
    era_of_message,
)

from .body import read_rest
from .exchange import Exchange, send_fault, send_plain, turn_away
from .guard import Guard, Problem
from .headers import Headers, repeated_routing_header
from .identity import Authenticate, Identity, send_refusal
from .legacy import Legacy
from .resumable import Resumable
from .streams import Streams
from .watch import Watch

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

logger = logging.getLogger("stanchion.http")

STRANGERS_BODY = 64 * 1024
"""Bytes that are read of a request whose sender is not known, so that the chain can refuse it."""

_Serve: TypeAlias = "Callable[[Scope, Headers, Receive, Send], Awaitable[None]]"


class Endpoint:
    """Serves one server at one path; made by `app`."""

    def __init__(
        self,
        server: Server,
        *,
        guard: Guard,
        legacy: Legacy,
        watch: Watch,
        authenticate: Authenticate | None,
        max_body: int,
        keep_alive: float,
        exchange: type[Exchange] = Exchange,
        streams: Streams | None = None,
    ) -> None:
        self._server = server
        self._guard = guard
        self._legacy = legacy
        self._watch = watch
        self._identity = Identity(server, authenticate)
        self._max_body = max_body
        self._keep_alive = keep_alive
        self._exchange = exchange
        self._legacy_exchange = exchange if streams is None else Resumable
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        raw = scope["headers"]
        headers = Headers(raw)
        is_post = scope["method"] == "POST"
        problem = self._guard.check(headers, is_post=is_post)
        if problem is not None:
            await turn_away(send, problem)
        elif len(headers.raw) != len(raw) and (repeated := repeated_routing_header(raw)):
            fault = HeaderMismatch(f"The header {repeated} is sent more than once")
            await send_fault(send, fault, Era.MODERN)
        elif serve := self._serving(scope["method"]):
            try:
                await serve(scope, headers, receive, send)
            except Refusal as refusal:
                await send_refusal(send, refusal)
            except ConfigurationError as error:
                logger.error("a request came, and the server does not run: %s", error)  # noqa: TRY400
                await send_refusal(send, Unavailable("The server has not started"))

        else:
            await send_plain(send, 405, b"", (b"allow", self._legacy.methods))

    def _serving(self, method: str) -> _Serve | None:
        match method:
            case "POST":
                return self._post
            case "GET" if self._streams is not None:
                return self._get
            case "DELETE":
                return self._delete
            case _:
                return None

    async def _post(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        connection = _connection(scope)
        await self._identity.find(headers, connection)
        stranger = connection.unidentified
        event = await receive()
        body: bytes = event.get("body", b"")
        if event.get("more_body") or len(body) > self._max_body:
            max_body = self._max_body if stranger is None else min(STRANGERS_BODY, self._max_body)
            whole = await read_rest(body, headers, receive, max_body)
            if isinstance(whole, Problem):
                if stranger is not None:
                    raise stranger

                await turn_away(send, whole)
                return

            body = whole

        try:
            message = decode(body)
        except ProtocolError as fault:
            await send_fault(send, fault, Era.LEGACY, fault.request_id)
            return

        if stranger is not None and not _passes_chain(message):
            raise stranger

        if _era_of(message, headers) is Era.LEGACY:
            exchange = self._legacy_exchange(receive, send, self._keep_alive, connection)
            await self._legacy.post(message, exchange, headers)
            return

        exchange = self._exchange(receive, send, self._keep_alive, connection)
        if isinstance(message, Request):
            await exchange.run(self._server, self._watch, message, headers)
        else:
            await self._other_modern(message, exchange, headers)

    async def _other_modern(
        self, message: Notification | Response | list[Any], exchange: Exchange, headers: Headers
    ) -> None:
        if not isinstance(message, Notification):
            fault = InvalidRequest("A modern client sends requests and notifications only")
            await exchange.refuse(fault, Era.MODERN)
        elif fault := _version_fault(headers):
            await exchange.refuse(fault, Era.MODERN)
        else:
            await self._server.dispatch(message, exchange.connection, headers=headers)
            await exchange.accept()

    async def _get(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        connection = _connection(scope)
        await self._identity.demand(headers, connection)
        if self._streams is not None:
            await self._streams.get(headers, connection, receive, send)

    async def _delete(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        connection = _connection(scope)
        await self._identity.demand(headers, connection)
        await self._legacy.delete(headers, connection.principal, send)


def _connection(scope: Scope) -> Connection:
    address, port = scope.get("client") or (None, None)
    version = scope.get("http_version")
    return Connection("http", address=address, port=port, http_version=version)


def _passes_chain(message: Message | list[Any]) -> bool:
    """Say whether the chain can refuse *message*; a batch has no status to do it with."""
    return isinstance(message, Request) and message.method != "ping"


def _era_of(message: Message | list[Any], headers: Mapping[str, str]) -> Era:
    if isinstance(message, Request | Notification):
        return era_of_message(message, headers)

    return (
        Era.LEGACY
        if headers.get(HEADER_VERSION, ASSUMED_HTTP_VERSION) in LEGACY_VERSIONS
        else Era.MODERN
    )


def _version_fault(headers: Mapping[str, str]) -> ProtocolError | None:
    """Give what is wrong with the version header of a modern notification, or None.

    For requests the gate says it; a notification passes without an answer, but over HTTP its
    header must be right all the same.
    """
    version = headers.get(HEADER_VERSION)
    if version in MODERN_VERSIONS:
        return None

    if version is None:
        return HeaderMismatch(f"The header {HEADER_VERSION} is required")

    if version in LEGACY_VERSIONS:
        return HeaderMismatch(f"The header {HEADER_VERSION} disagrees with the body")

    return UnsupportedVersion(version, SUPPORTED_VERSIONS)
