"""What a legacy peer has set up here that outlives its single requests."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from .protocol import Era

if TYPE_CHECKING:
    from .call import Call
    from .catalog import Entry
    from .listener import Listener
    from .server import Server
    from .session_scope import SessionScope
    from .uri_template import Variables

MAX_PAGES: Final = 128
"""Pages whose end one peer may still be told; of more, the oldest is forgotten."""


class Session:
    """One legacy session, as far as this process must remember it.

    A transport with a stream makes one for the stream's life; a transport whose requests come
    one by one finds that of their session.

    Attributes:
        listener: What it hears of changes by, or None before it is first needed.
        scope: What it is offered alone, or None before a handler asks for `call.session`.
        ended: True once it is over, though a call of it may still run.
        started: When it was made, on the clock of `time.perf_counter()`.
    """

    __slots__ = ("_pages", "ended", "listener", "scope", "started")

    def __init__(self) -> None:
        self.listener: Listener | None = None
        self.scope: SessionScope | None = None
        self.ended = False
        self.started = perf_counter()
        self._pages: dict[str, None] | None = None

    @property
    def pages(self) -> dict[str, None]:
        """The ids of the pages whose end its peer is still to be told, oldest first."""
        if self._pages is None:
            self._pages = {}

        return self._pages

    def expect(self, page: str) -> None:
        """Have the peer be told once the page with this id has done its work."""
        self.pages[page] = None
        if len(self.pages) > MAX_PAGES:
            del self.pages[next(iter(self.pages))]

    @property
    def is_empty(self) -> bool:
        """Whether a peer would miss nothing if all of this were forgotten."""
        if self.scope is not None and self.scope.size:
            return False

        return self.listener is None or not self.listener.uris


def scope_of(call: Call) -> SessionScope | None:
    """Give what the session of *call* is offered alone, or None while that is surely nothing."""
    session = None if call.connection is None else call.connection.session
    if session is None or session.scope is None or call.peer.era is not Era.LEGACY:
        return None

    return session.scope


def find_resource(server: Server, call: Call, uri: str) -> tuple[Entry[Any], Variables] | None:
    """Give what *uri* is for the caller of *call*: a resource, or a template and its variables.

    A resource with these exact characters comes first, then the most specific template. What
    the session has been offered alone stands in the place of what has the same key.
    """
    scope = scope_of(call)
    entry = None if scope is None else scope.resources.get(uri)
    entry = entry or server.resources.get(uri)
    if entry is not None:
        return entry, {}

    return server.templates.find(uri, None if scope is None else scope.templates)
