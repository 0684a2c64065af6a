"""One POST's answer: a JSON body, or an event stream once there is something to stream.

The stream is committed late, at the first notification or after a silence, so that an error
that comes before keeps its HTTP status and most calls never pay for a stream.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import anyio

from stanchion import (
    Connection,
    Era,
    InvalidRequest,
    ProtocolError,
    Reply,
    Request,
    RequestId,
    Server,
    encode_error,
    http_status,
)

from .guard import Problem
from .watch import Watch

if TYPE_CHECKING:
    from starlette.types import Receive, Send

Field: TypeAlias = tuple[bytes, bytes]
"""One header field as ASGI takes it."""

_NO_FIELD = re.compile(rb"[^\t\x20-\x7e\x80-\xff]")
"""What a header field's value may not hold (RFC 9110, section 5.5)."""

_JSON = (b"content-type", b"application/json")
STREAM_HEADERS = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)


class Exchange:
    """The answer to one POST.

    Attributes:
        connection: Where the request came from; holds the calls that run for it.
        headers: HTTP fields to send with the answer.
        seen: Whether the watch has looked at it before.
        watching: Whether a task waits for the client to go away.
    """

    streams = True  # whether anything can be sent before the answer

    # Defaults on the class: most exchanges end before any of these is set.
    seen = False
    watching = False
    _sent_at: float | None = None
    _streaming = False
    _started = False
    _ended = False
    _lock: anyio.Lock | None = None
    _message: Request | list[Any] | None = None

    def __init__(
        self, receive: Receive, send: Send, silence: float, connection: Connection
    ) -> None:
        """Take the two ends of an ASGI request whose body is read.

        Args:
            receive: The ASGI receive callable.
            send: The ASGI send callable.
            silence: Seconds after which a stream is committed or gets a sign of life; infinite
                for never.
            connection: Where the request came from.
        """
        self.connection = connection
        self.headers: Sequence[Field] = ()
        self._receive = receive
        self._send = send
        self._silence = silence

    async def run(
        self,
        server: Server,
        watch: Watch,
        message: Request | list[Any],
        headers: Mapping[str, str],
    ) -> None:
        """Have *server* handle a request or a batch, and send what it answers."""
        self._message = message
        watch.add(self)
        try:
            send = self.notify if self.streams else None
            reply = await server.dispatch(message, self.connection, headers=headers, send=send)
            await self.finish(reply, may_be_empty=isinstance(message, list))
        finally:
            watch.discard(self)

    async def notify(self, frame: bytes) -> None:
        """Send a notification, committing the stream if it is the first."""
        await self._write(event_of(frame), more=True)

    async def finish(self, reply: Reply, *, may_be_empty: bool = False) -> None:
        """Send the answer and end: as JSON, or as the last event of a committed stream.

        A cancelled request has no answer (`reply.parts` is empty); its stream ends without one.

        Args:
            reply: The answer.
            may_be_empty: Whether no answer means that nothing wanted one, as in a batch of
                notifications; it is HTTP 202 then.
        """
        parts = reply.parts
        if not parts and may_be_empty and not self._streaming:
            await self.accept()
            return

        if self._streaming or not parts:
            body = reply.body
            await self._write(b"" if body is None else event_of(body), more=False)
            return

        self._ended = True
        headers = [_JSON, (b"content-length", b"%d" % sum(map(len, parts))), *self.headers]
        if reply.headers:
            headers += encode_headers(reply.headers)

        await self._send(
            {"type": "http.response.start", "status": reply.status, "headers": headers}
        )
        for part in parts[:-1]:
            await self._send({"type": "http.response.body", "body": part, "more_body": True})

        await self._send({"type": "http.response.body", "body": parts[-1]})

    async def _write(self, chunk: bytes, *, more: bool) -> None:
        if self._lock is None:
            self._lock = anyio.Lock(fast_acquire=True)

        async with self._lock:
            if self._ended:
                return

            self._ended = not more
            self._streaming = True
            if not self._started:
                headers = [*STREAM_HEADERS, *self.headers]
                await self._send({"type": "http.response.start", "status": 200, "headers": headers})
                self._started = True  # now, as the call may be cancelled while it waits to send

            self._sent_at = None  # the next look of the watch says when, which is near enough
            await self._send({"type": "http.response.body", "body": chunk, "more_body": more})

    async def accept(self) -> None:
        """Answer 202: taken, and nothing to say."""
        self._ended = True
        await send_plain(self._send, 202)

    async def refuse(
        self,
        fault: ProtocolError,
        era: Era,
        id: RequestId | None = None,
        *,
        status: int | None = None,
    ) -> None:
        """Answer request *id*, or None where it is unknown, with a protocol fault."""
        self._ended = True
        await send_fault(self._send, fault, era, id, status=status)

    # What the watch asks.

    async def watch_disconnect(self) -> None:
        """Wait until the client goes away, and do what is then to be done."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

        self.lose_client()

    def lose_client(self) -> None:
        """End what the client has asked for, now that it has gone away."""
        if not self._ended:
            self.cancel()

    def cancel(self) -> None:
        """End the calls that run for this exchange, without an answer."""
        for id in _ids_of(self._message):
            call = self.connection.in_flight.get(id)
            if call is not None:
                call.cancel()

    def end_listens(self) -> None:
        """Have an open listen be answered."""
        for listener in self.connection.listeners or ():
            listener.close()

    def is_silent(self, now: float) -> bool:
        """Say whether nothing was sent for so long that a sign of life is due."""
        if self._ended or (self._lock is not None and self._lock.locked()):
            return False  # done, or waiting for the client to read what is under way

        if self._sent_at is None:
            self._sent_at = now

        return now - self._sent_at >= self._silence

    async def keep_alive(self) -> None:
        """Send a comment, which clients skip and proxies count as traffic."""
        await self._write(b": still working\n\n", more=True)


def event_of(frame: bytes) -> bytes:
    """Give *frame* as one event of a stream."""
    return b"event: message\ndata: " + frame + b"\n\n"


def _ids_of(message: Request | list[Any] | None) -> list[RequestId]:
    if isinstance(message, Request):
        return [message.id]

    members = [cast("dict[str, Any]", each) for each in message or () if isinstance(each, dict)]
    return [each["id"] for each in members if isinstance(each.get("id"), str | int)]


def encode_headers(headers: Mapping[str, str]) -> list[Field]:
    """Give header fields as ASGI takes them.

    A character that a field cannot hold becomes a question mark: a line break in a reason must
    neither start a field of its own nor cost the client its answer.
    """
    return [
        (name.lower().encode("latin-1"), _NO_FIELD.sub(b"?", value.encode("latin-1", "replace")))
        for name, value in headers.items()
    ]


async def send_plain(send: Send, status: int, body: bytes = b"", *headers: Field) -> None:
    """Send a whole answer at once; a body is JSON."""
    fields = [(b"content-length", str(len(body)).encode()), *headers]
    if body:
        fields.append(_JSON)

    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": body})


async def turn_away(send: Send, problem: Problem) -> None:
    """Answer a request that is refused before it is read as a message."""
    await send_plain(send, problem.status, encode_error(None, InvalidRequest.code, problem.reason))


async def send_fault(
    send: Send,
    fault: ProtocolError,
    era: Era,
    id: RequestId | None = None,
    *,
    status: int | None = None,
) -> None:
    """Answer request *id*, or None where it is unknown, with a protocol fault."""
    body = encode_error(id, fault.code, fault.message, fault.detail)
    await send_plain(send, status or http_status(fault, era), body)
