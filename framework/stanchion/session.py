"""What a legacy peer has set up here that outlives its single requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .listener import Listener


class Session:
    """One legacy session, as far as this process must remember it.

    A transport with a stream makes one for the stream's life; a transport whose requests come
    one by one finds that of their session.

    Attributes:
        listener: What it hears of changes by, or None before it is first needed.
        ended: True once it is over, though a call of it may still run.
    """

    __slots__ = ("ended", "listener")

    def __init__(self) -> None:
        self.listener: Listener | None = None
        self.ended = False

    @property
    def is_empty(self) -> bool:
        """Whether a peer would miss nothing if all of this were forgotten."""
        return self.listener is None or not self.listener.uris
