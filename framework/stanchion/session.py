"""What a legacy peer has set up here that outlives its single requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .listener import Listener

MAX_PAGES: Final = 128
"""Pages whose end one peer may still be told; of more, the oldest is forgotten."""


class Session:
    """One legacy session, as far as this process must remember it.

    A transport with a stream makes one for the stream's life; a transport whose requests come
    one by one finds that of their session.

    Attributes:
        listener: What it hears of changes by, or None before it is first needed.
        ended: True once it is over, though a call of it may still run.
    """

    __slots__ = ("_pages", "ended", "listener")

    def __init__(self) -> None:
        self.listener: Listener | None = None
        self.ended = False
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
        return self.listener is None or not self.listener.uris
