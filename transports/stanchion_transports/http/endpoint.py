"""The endpoint: one POST for every message, of either era.

Raw ASGI, because this is the hot path: headers are walked once, the body is read once, and
nothing is built that the request does not need.

Source: MCP 2025-11-25 and 2026-07-28, basic/transports, "Streamable HTTP".
"""

from __future__ import annotations

import logging
import math
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
    Principal,
    ProtocolError,
    Refusal,
    Request,
    Response,
    Server,
    Unavailable,
    UnsupportedVersion,
    decode,
    encode_error,
    era_of_message,
)

from .exchange import Exchange, encode_headers, send_fault, send_plain, turn_away
from .guard import Guard, Problem
from .headers import Headers, repeated_routing_header
from .legacy import Legacy
from .watch import Watch

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

Authenticate: TypeAlias = Callable[[Mapping[str, str]], Awaitable[Principal | None]]
"""Finds who sends a request from its header fields, whose names are in lower case.

Raises a `Refusal`, such as `Unauthenticated`, for who may not come in.
"""

REFUSING = range(400, 600)
"""The HTTP statuses that say no."""

logger = logging.getLogger("stanchion.http")


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
    ) -> None:
        self._server = server
        self._guard = guard
        self._legacy = legacy
        self._watch = watch
        self._authenticate = authenticate
        self._max_body = max_body
        self._keep_alive = keep_alive
        self._exchange = exchange

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
        elif is_post or scope["method"] == "DELETE":
            try:
                serve = self._post if is_post else self._delete
                await serve(scope, headers, receive, send)
            except Refusal as refusal:
                await _send_refusal(send, refusal)
            except ConfigurationError as error:
                logger.error("a request came, and the server does not run: %s", error)  # noqa: TRY400
                await _send_refusal(send, Unavailable("The server has not started"))

        else:
            await send_plain(send, 405, b"", (b"allow", self._legacy.methods))

    async def _post(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        principal = None if self._authenticate is None else await self._identify(headers)
        event = await receive()
        body: bytes = event.get("body", b"")
        if event.get("more_body") or len(body) > self._max_body:
            whole = await self._read_rest(body, headers, receive)
            if isinstance(whole, Problem):
                await turn_away(send, whole)
                return

            body = whole

        try:
            message = decode(body)
        except ProtocolError as fault:
            await send_fault(send, fault, Era.LEGACY, fault.request_id)
            return

        client = scope.get("client")
        address = None if client is None else client[0]
        connection = Connection("http", principal=principal, address=address)
        exchange = self._exchange(receive, send, self._keep_alive, connection)
        if _era_of(message, headers) is Era.LEGACY:
            await self._legacy.post(message, exchange, headers)
        elif isinstance(message, Request):
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

    async def _delete(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        principal = await self._identify(headers)
        await self._legacy.delete(headers, principal, send)

    async def _identify(self, headers: Headers) -> Principal | None:
        """Find who sends a request.

        Raises:
            Refusal: It may not come in, or nobody can tell who it is.
        """
        if self._authenticate is None:
            return None

        try:
            return await self._authenticate(headers)
        except Refusal:
            raise
        except Exception as error:
            logger.exception("authenticate failed, so the request is refused")
            raise Unavailable("Who is calling could not be found out") from error

    async def _read_rest(self, body: bytes, headers: Headers, receive: Receive) -> bytes | Problem:
        """Read what follows *body*, as far as the whole is no larger than it may be."""
        too_large = Problem(413, f"The body is larger than {self._max_body} bytes")
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > self._max_body:
            return too_large

        chunks, size, more = [body], len(body), True
        while more and size <= self._max_body:
            event = await receive()
            if event["type"] == "http.disconnect":
                # What came may happen to be a whole message, and is not what was meant.
                return Problem(400, "The body broke off")

            chunks.append(event.get("body", b""))
            size += len(chunks[-1])
            more = event.get("more_body", False)

        return b"".join(chunks) if size <= self._max_body else too_large


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


async def _send_refusal(send: Send, refusal: Refusal) -> None:
    """Refuse a request before it is one: its id is not known, and its code is the HTTP status."""
    headers = dict(refusal.headers)
    if refusal.retry_after is not None and math.isfinite(refusal.retry_after):
        headers["Retry-After"] = str(math.ceil(max(0.0, refusal.retry_after)))

    status = refusal.code if refusal.code in REFUSING else 403
    body = encode_error(None, refusal.code, str(refusal), {"reason": refusal.reason})
    await send_plain(send, status, body, *encode_headers(headers))
