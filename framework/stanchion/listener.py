"""A listener: one peer that hears of changes, and what it has still to be told."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import anyio

from .bus import Change
from .call import Call
from .expiry import Expiry
from .protocol import ELICITATION_COMPLETE
from .telling import Send
from .wire import encode_notification

if TYPE_CHECKING:
    from .changes import Changes

LISTS: Final = ("tools", "prompts", "resources")
"""The topics that are lists."""

MAX_URIS: Final = 1000
"""Resources that one listener hears of."""

MAX_DUE: Final = 2 * MAX_URIS
"""Messages that wait for one peer: those of all that it asked for, and the ends of pages."""

MAX_URI_LENGTH: Final = 2048
"""Characters of the URI of one that a legacy peer hears of."""

logger = logging.getLogger("stanchion.changes")


class Listener:
    """What one peer wants to hear of, and what of it was not sent yet.

    Of each list and of each resource at most one message waits, since a second would say
    nothing new. So a peer that never reads costs no more than what it asked for.

    Attributes:
        call: The call in whose name is decided what may be seen: the listen, or the last of a
            legacy peer that was about it.
        topics: The lists that it wants to hear of.
        uris: The resources that it wants to hear of.
    """

    __slots__ = (
        "_changes",
        "_closed",
        "_due",
        "_meta",
        "_pages",
        "_runner",
        "_wake",
        "call",
        "topics",
        "uris",
    )

    def __init__(
        self,
        changes: Changes,
        call: Call,
        topics: Iterable[str] = LISTS,
        uris: Iterable[str] = (),
        meta: Mapping[str, Any] | None = None,
        *,
        pages: dict[str, None] | None = None,
    ) -> None:
        """Describe a listener.

        Args:
            changes: What tells it.
            call: In whose name is decided what may be seen.
            topics: The lists that it wants to hear of.
            uris: The resources that it wants to hear of.
            meta: What each message carries in `_meta`, or None.
            pages: The ids of the pages whose end it is still to be told, which its session keeps.
        """
        self.call = call
        self.topics = frozenset(topics)
        self.uris = set(uris)
        self._changes = changes
        self._meta = meta
        self._due: dict[tuple[str, str], None] = {}  # in the order in which they came
        self._wake = anyio.Event()
        self._closed = False
        self._runner: object = None
        self._pages = {} if pages is None else pages

    @property
    def is_closed(self) -> bool:
        """Whether nothing will be sent any more."""
        return self._closed

    def offer(self, change: Change) -> None:
        """Note *change*, if the peer asked for such and may see what it is about."""
        if change.topic == "page":
            # Only to whom the page was given, and once (MCP 2025-11-25, client/elicitation).
            if change.key in self._pages and len(self._due) < MAX_DUE:
                del self._pages[change.key]
                self._due[change.topic, change.key] = None
                self._wake.set()

            return

        updated = change.topic == "updated"
        due = (change.topic, change.key if updated else "")
        wanted = change.key in self.uris if updated else change.topic in self.topics
        if not wanted or due in self._due or not self._may_see(change):
            return

        self._due[due] = None
        self._wake.set()

    def offer_all(self) -> None:
        """Make all that the peer asked for due, because it may have missed any of it."""
        self._due |= dict.fromkeys([(topic, "") for topic in LISTS if topic in self.topics])
        self._due |= dict.fromkeys([("updated", uri) for uri in self.uris])
        self._wake.set()

    def close(self) -> None:
        """End `run`, once it has sent what is due."""
        self._closed = True
        self._wake.set()

    def take_over(self) -> object:
        """End whatever runs, after the message that it is sending; gives what to `run` with."""
        self._runner = runner = object()
        self._wake.set()
        return runner

    def is_run_by(self, runner: object) -> bool:
        """Say whether nobody has taken over from *runner*."""
        return self._runner is runner

    async def run(self, send: Send, runner: object = None, *, until: Expiry | None = None) -> None:
        """Send what is due, one message after the other, until `close` or `take_over`.

        Args:
            send: Sends a frame.
            runner: What `take_over` gave, or None.
            until: When it ends as well, or None for never; nothing is sent after that.
        """
        while self._runner is runner:
            while self._due and self._runner is runner:
                if until is not None and until.has_passed:
                    return

                topic, key = next(iter(self._due))
                # Before it is sent: what changes meanwhile is due again.
                del self._due[topic, key]
                await send(self._frame(topic, key))

            if self._closed or (until is not None and until.has_passed):
                return

            # Not where another has taken over, which may wait for the event that is there.
            if self._runner is runner:
                self._wake = anyio.Event()
                await (self._wake.wait() if until is None else until.wait(self._wake))

    def _may_see(self, change: Change) -> bool:
        principal = self.call.principal
        ends = None if principal is None else principal.expires_at
        if ends is not None and time.time() >= ends:
            return False  # on a connection that goes on, until a later call proves it anew

        try:
            return self._changes.may_see(change, self.call)
        except Exception:
            # A layer that fails must cost neither the change nor the other listeners.
            logger.exception("a layer failed to say who may see %.130r", change.key)
            return False

    def _frame(self, topic: str, key: str) -> bytes:
        if topic == "page":
            return encode_notification(ELICITATION_COMPLETE, {"elicitationId": key})

        if topic == "updated":
            return encode_notification("notifications/resources/updated", self._tagged(uri=key))

        return encode_notification(f"notifications/{topic}/list_changed", self._tagged() or None)

    def _tagged(self, **params: Any) -> dict[str, Any]:
        return params if self._meta is None else {**params, "_meta": self._meta}
