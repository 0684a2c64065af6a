"""Cross-origin requests: which pages in a browser may call, and what they may read.

Raw ASGI around the endpoint, and only there is a list of origins; without one the endpoint
stands bare.

Source: WHATWG Fetch, "HTTP extensions", "CORS protocol".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from stanchion import HEADER_PARAM_PREFIX, ConfigurationError

from .exchange import Field, send_plain, turn_away
from .guard import Guard
from .headers import Headers

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

METHODS = "GET, POST, DELETE"

REQUEST_HEADERS = (
    "Accept, Authorization, Content-Type, Last-Event-ID, Mcp-Method, Mcp-Name, "
    "Mcp-Protocol-Version, Mcp-Session-Id, baggage, traceparent, tracestate"
)
"""What a page may send; `Mcp-Param-` fields beside, which the tools' schemas name."""

ANSWER_HEADERS = "Mcp-Session-Id, Retry-After, WWW-Authenticate"
"""What a page may read."""

MAX_AGE = 600
"""Seconds for which a browser remembers a preflight's answer."""

MAX_PARAMS = 64
"""`Mcp-Param-` fields that one preflight may ask for; it is the caller's list."""

_TOKEN = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]+")


class Cors:
    """Answers preflights, and tells browsers that a page may read the answers.

    What an origin may do is settled by the guard; this only speaks to browsers.
    """

    def __init__(
        self, inner: ASGIApp, guard: Guard, origins: Iterable[str], *, credentials: bool
    ) -> None:
        """Take the origins whose pages may call.

        Args:
            inner: The endpoint.
            guard: Checks Host and Origin of a preflight.
            origins: Origins such as `https://app.example.com`, or `*` for every one.
            credentials: Whether browsers may send cookies and the like.

        Raises:
            ConfigurationError: Every origin is to send credentials, so that any page at all
                could act as the browser's user.
        """
        named = frozenset(origin.lower().rstrip("/").encode("latin-1") for origin in origins)
        self._every = b"*" in named
        if self._every and credentials:
            raise ConfigurationError("cors_credentials needs cors_origins that are named, not '*'")

        self._inner = inner
        self._guard = guard
        self._origins = named
        self._credentials = credentials

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a preflight, or let the endpoint answer with CORS fields."""
        headers = Headers(scope["headers"])
        origin = headers.raw.get(b"origin")
        if origin is None or not (self._every or origin.lower() in self._origins):
            await self._inner(scope, receive, send)
            return

        fields = self._fields(origin)
        if scope["method"] == "OPTIONS" and b"access-control-request-method" in headers.raw:
            await self._preflight(headers, fields, send)
            return

        fields.append((b"access-control-expose-headers", ANSWER_HEADERS.encode()))

        async def send_with_fields(event: Message) -> None:
            if event["type"] == "http.response.start":
                event = {**event, "headers": [*event.get("headers", ()), *fields]}

            await send(event)

        await self._inner(scope, receive, send_with_fields)

    def _fields(self, origin: bytes) -> list[Field]:
        if self._every:
            return [(b"access-control-allow-origin", b"*")]

        fields = [(b"access-control-allow-origin", origin), (b"vary", b"Origin")]
        if self._credentials:
            fields.append((b"access-control-allow-credentials", b"true"))

        return fields

    async def _preflight(self, headers: Headers, fields: list[Field], send: Send) -> None:
        problem = self._guard.check(headers, is_post=False)
        if problem is not None:
            await turn_away(send, problem)
            return

        allowed = [REQUEST_HEADERS, *_params(headers.get("access-control-request-headers", ""))]
        await send_plain(
            send,
            204,
            b"",
            *fields,
            (b"access-control-allow-methods", METHODS.encode()),
            (b"access-control-allow-headers", ", ".join(allowed).encode("latin-1")),
            (b"access-control-max-age", b"%d" % MAX_AGE),
        )


def _params(asked: str) -> list[str]:
    """Give those of the header fields *asked* for that carry a tool's parameters."""
    names = (name.strip().lower() for name in asked.split(","))
    params = [
        name for name in names if name.startswith(HEADER_PARAM_PREFIX) and _TOKEN.fullmatch(name)
    ]
    return params[:MAX_PARAMS]
