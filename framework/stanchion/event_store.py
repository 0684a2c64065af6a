"""The event store: what was sent on the streams of legacy sessions, for clients that come back.

Source: MCP 2025-11-25, basic/transports, "Resumability and Redelivery".
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import anyio

from .errors import ConfigurationError

EVENT_COST: Final = 256
"""Bytes that an event counts for beside its frame, so that empty ones are bounded, too."""

MIN_BYTES: Final = 4 * EVENT_COST


class Event(NamedTuple):
    """One event of a stream.

    Attributes:
        number: Its place in the stream, from 0.
        frame: The message, or empty where there is none: at the beginning, or an end without an
            answer.
        last: Whether the stream ends with it.
    """

    number: int
    frame: bytes
    last: bool = False


class EventStore(ABC):
    """Keeps the events of streams for as long as a client may come back for them.

    A stream belongs to a session and is found only together with it. What is kept must be
    bounded; what a store no longer has, it says, and never skips.
    """

    @abstractmethod
    async def append(self, session: str, stream: str, event: Event) -> None:
        """Keep *event*, whose number is one above that of the stream's event before.

        What cannot be kept is given up; it must not cost the stream itself.
        """

    @abstractmethod
    async def after(self, session: str, stream: str, number: int) -> Sequence[Event] | None:
        """Give all events above *number* that there are, in order.

        Returns:
            None where the stream is not known, or where any of them is not kept any more.
        """

    @abstractmethod
    async def wait(self, session: str, stream: str, number: int) -> None:
        """Wait until there may be an event above *number*, or the stream is no longer known."""

    @abstractmethod
    async def forget(self, session: str) -> None:
        """Drop all streams of *session*, which has ended."""


class _Stream:
    """The events of one stream that are kept, and who waits for the next."""

    __slots__ = ("arrived", "events", "kept_from", "size", "upto")

    def __init__(self, first: int) -> None:
        self.events: list[Event] = []
        self.kept_from = first  # the number from which on nothing is missing
        self.upto = first - 1  # the number of the last event, kept or not
        self.size = 0
        self.arrived: anyio.Event | None = None

    def clear(self) -> int:
        """Give up all events; gives how much that frees."""
        freed, self.size = self.size, 0
        self.events.clear()
        self.kept_from = self.upto + 1
        return freed

    def wake(self) -> None:
        if self.arrived is not None:
            self.arrived.set()
            self.arrived = None


class MemoryEventStore(EventStore):
    """Events in the memory of this process; another replica cannot resume a stream from here.

    Where there is too much, the stream that was still for longest is given up: first one of the
    session that appends, then any. Open streams are kept while there is room, ended ones only for
    a while.
    """

    def __init__(
        self,
        *,
        max_bytes: int = 64 * 1024 * 1024,
        max_session_bytes: int = 8 * 1024 * 1024,
        ttl: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Say how much is kept.

        Args:
            max_bytes: Bytes kept of all sessions, `MIN_BYTES` or more.
            max_session_bytes: Bytes kept of one session, `MIN_BYTES` or more; a larger event is
                not kept at all.
            ttl: Seconds that a stream is kept after its end, more than 0.
            clock: Gives the time in seconds.

        Raises:
            ConfigurationError: A number is out of range.
        """
        if min(max_bytes, max_session_bytes) < MIN_BYTES or not ttl > 0:
            raise ConfigurationError(
                f"max_bytes and max_session_bytes must be at least {MIN_BYTES}, and ttl positive"
            )

        self._max_bytes = max_bytes
        self._max_session_bytes = min(max_bytes, max_session_bytes)
        self._ttl = ttl
        self._clock = clock
        # {session: {stream: events}}; of all streams the one that was still for longest first, and
        # of those that have ended the first.
        self._sessions: dict[str, OrderedDict[str, _Stream]] = {}
        self._order: OrderedDict[tuple[str, str], _Stream] = OrderedDict()
        self._ended: dict[tuple[str, str], float] = {}
        self._sizes: dict[str, int] = {}
        self._size = 0

    @property
    def size(self) -> int:
        """Bytes that the events count for."""
        return self._size

    @property
    def streams(self) -> int:
        """How many streams are known."""
        return len(self._order)

    async def append(self, session: str, stream: str, event: Event) -> None:
        """Keep *event* if there is room for it, whatever must be given up for that."""
        self._expire()
        key = session, stream
        streams = self._sessions.setdefault(session, OrderedDict())
        kept = streams.get(stream)
        if kept is None:
            kept = streams[stream] = self._order[key] = _Stream(event.number)
            self._resize(session, EVENT_COST)

        streams.move_to_end(stream)
        self._order.move_to_end(key)
        kept.upto = event.number
        if event.last:
            self._ended[key] = self._clock()

        cost = len(event.frame) + EVENT_COST
        if cost > self._max_session_bytes:
            self._resize(session, -kept.clear())
        else:
            kept.events.append(event)
            kept.size += cost
            self._resize(session, cost)

        self._make_room(session, kept)
        kept.wake()

    async def after(self, session: str, stream: str, number: int) -> Sequence[Event] | None:
        """Give all events above *number*, or None where any of them is not kept any more."""
        self._expire()
        kept = self._order.get((session, stream))
        if kept is None or not kept.kept_from - 1 <= number <= kept.upto:
            return None

        return kept.events[number + 1 - kept.kept_from :]

    async def wait(self, session: str, stream: str, number: int) -> None:
        """Wait until there may be an event above *number*, or the stream is no longer known."""
        kept = self._order.get((session, stream))
        if kept is not None and kept.upto <= number:
            kept.arrived = kept.arrived or anyio.Event()
            await kept.arrived.wait()

    async def forget(self, session: str) -> None:
        """Drop all streams of *session*, which has ended."""
        for stream in list(self._sessions.get(session, ())):
            self._drop(session, stream)

    def _resize(self, session: str, change: int) -> None:
        self._size += change
        self._sizes[session] = self._sizes.get(session, 0) + change

    def _make_room(self, session: str, newest: _Stream) -> None:
        """Give up streams until what is kept fits; of the one that has just grown, its start."""
        streams = self._sessions[session]
        while self._sizes[session] > self._max_session_bytes:
            oldest = next(iter(streams))
            if streams[oldest] is newest:
                self._shorten(session, newest)
            else:
                self._drop(session, oldest)

        while self._size > self._max_bytes:
            other, stream = next(iter(self._order))
            if self._order[other, stream] is newest:
                self._shorten(session, newest)
            else:
                self._drop(other, stream)

    def _shorten(self, session: str, stream: _Stream) -> None:
        first = stream.events.pop(0)
        stream.kept_from = first.number + 1
        stream.size -= len(first.frame) + EVENT_COST
        self._resize(session, -len(first.frame) - EVENT_COST)

    def _drop(self, session: str, stream: str) -> None:
        streams = self._sessions[session]
        kept = streams.pop(stream)
        del self._order[session, stream]
        self._ended.pop((session, stream), None)
        self._resize(session, -kept.size - EVENT_COST)
        if not streams:
            del self._sessions[session], self._sizes[session]

        kept.wake()

    def _expire(self) -> None:
        lapsed = self._clock() - self._ttl
        while self._ended:
            oldest = next(iter(self._ended))
            if self._ended[oldest] > lapsed:
                break

            self._drop(*oldest)
