"""The streams that a legacy session opens with GET: for what changes, or to resume an answer."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import orjson

from stanchion import Event, EventStore, Reply, encode_error

from .exchange import Exchange, encode_headers, send_plain
from .identity import REFUSING
from .resumable import OPEN, Resumable, encode_event
from .sessions import LiveSession


class Standing(Resumable):
    """The stream on which a session is told what changes; it stands as long as the client reads.

    Attributes:
        scope: What the client's going away cancels.
        missed: The stream that the client had before and the number of the event that it saw
            last, or None where it had none.
    """

    prefix = "get"
    missed: tuple[str, int] | None = None
    scope: anyio.CancelScope

    async def notify(self, frame: bytes) -> None:
        """Send a message, or with the empty frame open the stream."""
        if frame:
            await super().notify(frame)
            return

        async with self._in_order():
            missed = b"" if self.missed is None else await self._replay(*self.missed)
            await self._put(missed + (await self._begin() or OPEN))

    async def finish(self, reply: Reply, *, may_be_empty: bool = False) -> None:
        """End the stream, which bears no answer; or answer with *reply* why it was not opened."""
        if not self._open:
            await self._refuse(reply)
            return

        async with self._in_order():
            await self._put(await self._keep(b"", last=True), more=False)
            self._ended = True

    async def _refuse(self, reply: Reply) -> None:
        """Say why there is no stream, with a status, since no message asked for it."""
        self._ended = True
        if reply.body is None:  # the session has ended meanwhile
            await send_plain(self._send, 404)
            return

        error = orjson.loads(reply.body)["error"]
        status = error["code"] if error["code"] in REFUSING else 500
        body = encode_error(None, error["code"], error["message"], error.get("data"))
        await send_plain(self._send, status, body, *encode_headers(reply.headers))

    async def _replay(self, stream: str, number: int) -> bytes:
        """Give what the client missed, or have it told of everything anew."""
        session, store = self._session, self._store
        if session is None or store is None:
            return b""

        events = await store.after(session.id, stream, number)
        if events is not None:
            return _encoded(stream, events)

        if session.listener is not None:
            session.listener.offer_all()

        return b""

    def lose_client(self) -> None:
        """End the stream, now that the client has gone away."""
        self._gone = True
        self.scope.cancel()


class Resumed(Exchange):
    """The rest of an answer whose connection was lost or let go.

    Attributes:
        scope: What the client's going away cancels.
    """

    scope: anyio.CancelScope

    async def follow(
        self, store: EventStore, session: LiveSession, stream: str, number: int
    ) -> None:
        """Send the events above *number*, those that are still to come included, to the last.

        Ends early if the store gives the stream up.
        """
        await self._write(b": resumed\n\n", more=True)
        while events := await self._next(store, session, stream, number):
            await self._write(_encoded(stream, events), more=True)
            number = events[-1].number
            if events[-1].last:
                break

    async def close(self) -> None:
        """End the response."""
        await self._write(b"", more=False)

    async def _next(
        self, store: EventStore, session: LiveSession, stream: str, number: int
    ) -> Sequence[Event] | None:
        """Wait for events above *number*; None if there will be none."""
        while True:
            events = await store.after(session.id, stream, number)
            if events is None or events:
                return events

            await store.wait(session.id, stream, number)

    def lose_client(self) -> None:
        """Stop following, now that the client has gone away."""
        self.scope.cancel()


def _encoded(stream: str, events: Sequence[Event]) -> bytes:
    """Give *events* as they are sent; an end without an answer is told by the response's end."""
    return b"".join(
        encode_event(stream, event) for event in events if event.frame or not event.last
    )
