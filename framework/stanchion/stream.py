"""Serving one peer over a stream of frames: stdio, memory, WebSocket."""

from __future__ import annotations

from collections.abc import AsyncIterable
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.abc
import anyio.lowlevel

from .ending import SessionEnding
from .errors import ProtocolError, Unavailable
from .peer import Connection, Principal
from .session import Session
from .telling import Send
from .wire import Message, Request, decode, encode_error

if TYPE_CHECKING:
    from .server import Server

MAX_PENDING: Final = 4096
"""Requests of one peer that are not answered yet; beyond, nothing is read until one is.

Above the server's own bound on calls, so it is met only by a peer that asks without reading.
"""

MAX_PENDING_BYTES: Final = 32 * 1024 * 1024
"""Bytes of those requests together, where there are several; one that is too many is refused.

Refused, not left unread: the answer or the cancellation that the others wait for may be behind it.
"""


async def serve_stream(
    server: Server,
    connection: Connection,
    frames: AsyncIterable[bytes | ProtocolError],
    write: Send,
    *,
    grace: float = 0.5,
) -> None:
    """Serve *connection* until *frames* end, then let running calls finish within *grace*.

    Requests run side by side while the next frame is read, and everything is written through
    one ordered writer. `initialize` alone is answered before the next frame is read, because
    what follows it depends on it.

    Args:
        server: A started server.
        connection: What is known of the peer.
        frames: What it sends, one frame each; an error stands for a frame that the transport
            would not take, and is sent to the peer.
        write: Writes one frame; called by one task at a time.
        grace: Seconds that running calls have after the last frame.
    """
    stream = _Stream(server, connection, write)
    try:
        async with anyio.create_task_group() as running:
            async for frame in frames:
                await stream.take(frame, running)

            server.changes.disconnect(connection)
            running.cancel_scope.deadline = anyio.current_time() + grace
    finally:
        server.changes.disconnect(connection)
        _tell_end(server, connection)


def _tell_end(server: Server, connection: Connection) -> None:
    """Tell who observes that a legacy peer's session is over; without a handshake there is none."""
    peer, session = connection.peer, connection.session
    if peer is not None and session is not None:
        lasted = perf_counter() - session.started
        server.session_ended(SessionEnding(connection.transport, peer.version, lasted))


class _Stream:
    """One peer's frames on their way to the server, and the answers on their way back."""

    def __init__(self, server: Server, connection: Connection, write: Send) -> None:
        self._server = server
        self._connection = connection
        self._write = write
        self._writing = anyio.Lock(fast_acquire=True)
        self._room = anyio.Semaphore(MAX_PENDING, fast_acquire=True)
        self._pending_bytes = 0
        self._starting = 0
        self._hears = False
        connection.hears = True
        connection.listeners = set()
        connection.session = Session()

    async def take(self, frame: bytes | ProtocolError, running: anyio.abc.TaskGroup) -> None:
        """Start what *frame* asks for in *running*, or do at once what cannot wait."""
        principal = self._connection.principal  # as it is for this frame
        try:
            if isinstance(frame, ProtocolError):
                raise frame

            message = decode(frame)
        except ProtocolError as fault:
            await self._send(encode_error(fault.request_id, fault.code, fault.message))
            return

        inline = isinstance(message, Request) and message.method == "initialize"
        if isinstance(message, Request | list) and not inline:
            size = len(frame)
            if self._pending_bytes and self._pending_bytes + size > MAX_PENDING_BYTES:
                await self._refuse(message)
                return

            await self._room.acquire()
            self._pending_bytes += size
            self._starting += 1
            running.start_soon(self._answer_beside, message, size, principal)
            return

        # A cancellation that comes right behind its request must find the call.
        while self._starting:
            await anyio.lowlevel.checkpoint()

        self._connection.principal = principal
        await self._answer(message)
        session = self._connection.session
        if session is not None and session.listener is not None and not self._hears:
            self._hears = True
            running.start_soon(session.listener.run, self._send)

    async def _answer_beside(
        self, message: Message | list[Any], size: int, principal: Principal | None
    ) -> None:
        self._starting -= 1
        self._connection.principal = principal  # the dispatch takes it before anything waits
        try:
            await self._answer(message)
        finally:
            self._pending_bytes -= size
            self._room.release()

    async def _refuse(self, message: Request | list[Any]) -> None:
        id = message.id if isinstance(message, Request) else None
        reason = "unavailable: requests that are not answered yet hold too much"
        detail = {"policy": "max_pending_bytes", "retryAfterSeconds": 1.0}
        await self._send(encode_error(id, Unavailable.code, reason, detail))

    async def _answer(self, message: Message | list[Any]) -> None:
        reply = await self._server.dispatch(message, self._connection, send=self._send)
        body = reply.body
        if body is not None:
            await self._send(body)

    async def _send(self, frame: bytes) -> None:
        async with self._writing:
            await self._write(frame)
