"""Who sends a request, and what is answered to those who may not come in."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from stanchion import (
    CREDENTIAL_FIELDS,
    Connection,
    Principal,
    Refusal,
    Server,
    Unavailable,
    encode_error,
)

from .exchange import encode_headers, send_plain
from .headers import Headers

if TYPE_CHECKING:
    from starlette.types import Send

Authenticate: TypeAlias = Callable[[Mapping[str, str]], Awaitable[Principal | None]]
"""Finds who sends a request from its header fields, whose names are in lower case.

Raises a `Refusal`, such as `Unauthenticated`, for who may not come in.
"""

REFUSING = range(400, 600)
"""The HTTP statuses that say no."""

logger = logging.getLogger("stanchion.http")


class Identity:
    """Finds who sends the requests to one server: by a function, or by a layer of its chain."""

    def __init__(self, server: Server, authenticate: Authenticate | None) -> None:
        """Take what finds it.

        Args:
            server: The server, whose layer is asked where *authenticate* is None.
            authenticate: What finds it instead.
        """
        self._server = server
        self._authenticate = authenticate
        self._fields: Sequence[bytes] | None = None

    async def find(self, headers: Headers, connection: Connection) -> None:
        """Put on *connection* who sends a request, and take the credentials out of *headers*.

        Where the layer refuses, the refusal is left in `connection.unidentified`.

        Raises:
            Refusal: The function refuses, or it fails.
        """
        if self._authenticate is not None:
            connection.principal = await identified(self._authenticate, headers)
        elif self._server.identifier is not None:
            await self._server.identify(connection, headers)
        else:
            return

        for field in self._fields or self._read_fields():
            headers.raw.pop(field, None)

    async def demand(self, headers: Headers, connection: Connection) -> None:
        """As `find`, for a request without a message that could be refused in the chain.

        Raises:
            Refusal: The sender may not come in.
        """
        await self.find(headers, connection)
        if connection.unidentified is not None:
            raise connection.unidentified

    def _read_fields(self) -> Sequence[bytes]:
        identifier = self._server.identifier
        named = frozenset[str]() if identifier is None else identifier.credential_fields
        self._fields = [name.lower().encode("latin-1") for name in CREDENTIAL_FIELDS | named]
        return self._fields


async def identified(authenticate: Authenticate, headers: Mapping[str, str]) -> Principal | None:
    """Find who sends a request.

    Raises:
        Refusal: It may not come in, or nobody can tell who it is.
    """
    try:
        return await authenticate(headers)
    except Refusal:
        raise
    except Exception as error:
        logger.exception("authenticate failed, so the request is refused")
        raise Unavailable("Who is calling could not be found out") from error


async def send_refusal(send: Send, refusal: Refusal) -> None:
    """Refuse a request before it is one: its id is not known, and its code is the HTTP status."""
    headers = dict(refusal.headers)
    if refusal.retry_after is not None and math.isfinite(refusal.retry_after):
        headers["Retry-After"] = str(math.ceil(max(0.0, refusal.retry_after)))

    status = refusal.code if refusal.code in REFUSING else 403
    body = encode_error(None, refusal.code, str(refusal), {"reason": refusal.reason})
    await send_plain(send, status, body, *encode_headers(headers))
