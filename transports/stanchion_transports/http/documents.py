"""The documents of the layers, such as what `/.well-known/` holds: for everybody, and for pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
from starlette.datastructures import URLPath
from starlette.routing import BaseRoute, Match, NoMatchFound

from stanchion import Server

from .exchange import send_plain

if TYPE_CHECKING:
    from typing import Any

    from starlette.types import Receive, Scope, Send

MAX_AGE = 300
"""Seconds for which a document may be kept."""

ANY_PAGE = (b"access-control-allow-origin", b"*")
ALLOW = b"GET, HEAD, OPTIONS"
METHODS = frozenset(ALLOW.decode().split(", "))


class Documents(BaseRoute):
    """The route of a server's documents: those of its chain, once the server has started.

    `http.app` has one. Where that application is mounted below a path, the paths of the documents
    are the outer application's, which is then given one too: `routes=[Documents(server), …]`.

    Source: RFC 9728, section 3; WHATWG Fetch, "CORS protocol".
    """

    def __init__(self, server: Server) -> None:
        """Serve the documents of *server*."""
        self._server = server

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match the requests for a document that there is."""
        found = scope["type"] == "http" and scope["path"] in self._server.documents
        return (Match.FULL if found else Match.NONE), {}

    def url_path_for(self, name: str, /, **path_params: Any) -> URLPath:
        """Give no path: documents have no names.

        Raises:
            NoMatchFound: Always.
        """
        raise NoMatchFound(name, path_params)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with the document; a page of any origin may read it."""
        method = scope["method"]
        if method not in METHODS:
            await send_plain(send, 405, b"", (b"allow", ALLOW))
        elif method == "OPTIONS":
            fields = (
                (b"access-control-allow-methods", ALLOW),
                (b"access-control-allow-headers", b"*"),
            )
            await send_plain(send, 204, b"", ANY_PAGE, *fields)
        else:
            body = orjson.dumps(dict(self._server.documents[scope["path"]]))
            kept = (b"cache-control", b"public, max-age=%d" % MAX_AGE)
            await send_plain(send, 200, body, ANY_PAGE, kept)
