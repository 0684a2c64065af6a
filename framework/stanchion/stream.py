"""Serving one peer over a stream of frames: stdio, memory, WebSocket."""

from __future__ import annotations

from collections.abc import AsyncIterable
from typing import TYPE_CHECKING, Any

import anyio

from .call import Send
from .errors import ProtocolError
from .peer import Connection
from .wire import Message, Request, decode, encode_error

if TYPE_CHECKING:
    from .server import Server


async def serve_stream(
    server: Server,
    connection: Connection,
    frames: AsyncIterable[bytes],
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
        frames: What it sends, one frame each.
        write: Writes one frame; called by one task at a time.
        grace: Seconds that running calls have after the last frame.
    """
    writing = anyio.Lock(fast_acquire=True)

    async def send(frame: bytes) -> None:
        async with writing:
            await write(frame)

    async def answer(message: Message | list[Any]) -> None:
        reply = await server.dispatch(message, connection, send=send)
        if reply.body is not None:
            await send(reply.body)

    async with anyio.create_task_group() as running:
        async for frame in frames:
            try:
                message = decode(frame)
            except ProtocolError as fault:
                await send(encode_error(fault.request_id, fault.code, fault.message))
                continue

            inline = isinstance(message, Request) and message.method == "initialize"
            if isinstance(message, Request | list) and not inline:
                running.start_soon(answer, message)
            else:
                await answer(message)

        running.cancel_scope.deadline = anyio.current_time() + grace
