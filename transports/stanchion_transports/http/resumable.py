"""One answer of a legacy session whose stream outlives the connection that it began on.

Each event has an id, and is kept before it is sent. When the connection is lost or let go, the
call runs on and its events are only kept; the client comes back for them with a GET that names
the last id it has seen.

Source: MCP 2025-11-25, basic/transports, "Sending Messages to the Server" and "Resumability and
Redelivery".
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio

from stanchion import Event, EventStore, Reply

from .exchange import Exchange, event_of

if TYPE_CHECKING:
    from .sessions import LiveSession

PRIMED_SINCE = "2025-11-25"
"""From this version on a stream begins with an event that has an id and nothing else.

Older clients would take its empty text for a message.
"""

OPEN = b": open\n\n"
"""What opens a stream where nothing else does: a comment, which clients skip."""


def event_id(stream: str, number: int) -> str:
    """Give the id of an event, which says what stream it belongs to."""
    return f"{stream}-{number}"


def read_event_id(id: str) -> tuple[str, int] | None:
    """Give the stream and the number that *id* says, or None if it is no id of ours."""
    stream, _, number = id.rpartition("-")
    # isdecimal alone would take digits of other scripts, and long ones cost time.
    if not stream or len(number) > 10 or not (number.isascii() and number.isdecimal()):
        return None

    return stream, int(number)


def encode_event(stream: str, event: Event) -> bytes:
    """Give *event* as it is sent; one without a message is an id with empty text."""
    id = f"id: {event_id(stream, event.number)}\n".encode()
    return id + (event_of(event.frame) if event.frame else b"data: \n\n")


class Resumable(Exchange):
    """An exchange whose stream a client can come back to, once it is bound to a session.

    Attributes:
        stream: What tells its stream from the session's others; the ids of its events begin so.
    """

    prefix = "post"

    # Defaults on the class, as in the base: most exchanges end before any of these is set.
    stream = ""
    _session: LiveSession | None = None
    _store: EventStore | None = None
    _number = 0
    _open = False  # the stream, whether or not a connection carries it
    _gone = False  # the connection
    _gone_at = 0.0
    _emitting: anyio.Lock | None = None
    _patience = math.inf
    _followers = 0

    def bind(self, session: LiveSession, store: EventStore, *, patience: float = math.inf) -> None:
        """Have what is streamed be kept in *store* for *session*.

        Args:
            session: The session.
            store: The store.
            patience: Seconds that the calls go on for a client that has gone and not come back.
        """
        self._session = session
        self._store = store
        self._patience = patience

    @contextmanager
    def followed(self) -> Generator[None]:
        """Count a client that has come back for the rest, for as long as it is there."""
        self._followers += 1
        try:
            yield
        finally:
            self._followers -= 1
            self._gone_at = anyio.current_time()

    async def notify(self, frame: bytes) -> None:
        """Keep a message and send it, opening the stream if it is the first."""
        async with self._in_order():
            if not self._ended:
                await self._put(await self._begin() + await self._keep(frame))

    async def finish(self, reply: Reply, *, may_be_empty: bool = False) -> None:
        """End with the answer: as JSON, or as the last event of an open stream."""
        if not self._open:
            await super().finish(reply, may_be_empty=may_be_empty)
            return

        async with self._in_order():
            await self._put(await self._keep(reply.body or b"", last=True), more=False)
            self._ended = True

        if self._session is not None:
            self._session.lost.pop(self.stream, None)

    async def release(self, retry_after: float) -> None:
        """Let the connection go; the client comes back for what follows.

        Does nothing for a client so old that it would not come back.

        Args:
            retry_after: Seconds that it is asked to stay away, 0 or more.
        """
        async with self._in_order():
            if self._ended or self._gone or not self._is_primed():
                return

            retry = b"retry: %d\n\n" % math.ceil(retry_after * 1000)
            await self._write(await self._begin() + retry, more=True)
            self._lose()
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    def _in_order(self) -> anyio.Lock:
        """Give the lock under which an event is numbered, kept and sent."""
        if self._emitting is None:
            self._emitting = anyio.Lock(fast_acquire=True)

        return self._emitting

    def _is_primed(self) -> bool:
        return self._session is not None and self._session.version >= PRIMED_SINCE

    async def _begin(self) -> bytes:
        """Open the stream if it is not open yet; gives what is then to be sent first."""
        if self._open:
            return b""

        self._open = True
        self.stream = f"{self.prefix}.{secrets.token_hex(8)}"
        return await self._keep(b"") if self._is_primed() else b""

    async def _keep(self, frame: bytes, *, last: bool = False) -> bytes:
        """Keep the next event, and give it as it is sent."""
        event = Event(self._number, frame, last)
        self._number += 1
        if self._session is not None and self._store is not None:
            await self._store.append(self._session.id, self.stream, event)

        # An end without an answer is told by the end of the response.
        return b"" if last and not frame else encode_event(self.stream, event)

    def _lose(self) -> None:
        """Go on without the connection; the client finds the rest by the stream's name."""
        self._gone = True
        self._gone_at = anyio.current_time()
        if self._session is not None:
            self._session.lost[self.stream] = self

    async def _put(self, chunk: bytes, *, more: bool = True) -> None:
        if not self._gone:
            await self._write(chunk, more=more)

    # What the watch asks.

    def lose_client(self) -> None:
        """Go on with what the client has asked for if it can come back; end it otherwise."""
        if self._ended or self._gone:
            return

        if self._open and self._session is not None:
            self._lose()
        else:
            self.cancel()

    def is_silent(self, now: float) -> bool:
        """Say whether a sign of life is due, or none has come from a client that has gone."""
        if self._gone:
            return not self._followers and now - self._gone_at >= self._patience

        busy = self._emitting is not None and self._emitting.locked()
        return not busy and super().is_silent(now)

    async def keep_alive(self) -> None:
        """Open the stream, so that the client can come back, or send a comment on it.

        For a client that has gone for too long the calls are ended.
        """
        if self._gone:
            self.cancel()
            return

        async with self._in_order():
            if self._ended or self._gone:
                return

            if self._open:
                await super().keep_alive()
            else:
                await self._put(await self._begin() or OPEN)
