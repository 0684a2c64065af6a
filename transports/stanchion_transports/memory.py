"""Frames between a server and a peer in the same process, for tests and embedding."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import anyio
from anyio.streams.stapled import StapledObjectStream

from stanchion import Connection, Principal, Server, is_cancellation, serve_stream

MemoryStream = StapledObjectStream[bytes]
"""The peer's end: `send` a frame to the server, `receive` one from it."""


@asynccontextmanager
async def open_memory(
    server: Server, *, principal: Principal | None = None, max_buffered: float = math.inf
) -> AsyncGenerator[MemoryStream]:
    """Start *server*, serve one peer, and give the peer's end of the stream.

    Frames pass as bytes, as over any other transport.

    Args:
        server: The server; it is started here, or used as it runs.
        principal: Who the peer is found to be, or None.
        max_buffered: Frames that each direction holds before its sender waits.

    Raises:
        ConfigurationError: The server is not servable.
    """
    async with server:
        to_server, at_server = anyio.create_memory_object_stream[bytes](max_buffered)
        to_peer, at_peer = anyio.create_memory_object_stream[bytes](max_buffered)
        connection = Connection("memory", principal=principal)

        async def write(frame: bytes) -> None:
            with suppress(anyio.BrokenResourceError):  # the peer has gone, and reads no answer
                await to_peer.send(frame)

        async def serve() -> None:
            async with at_server, to_peer:
                await serve_stream(server, connection, at_server, write)

        failure: BaseException | None = None
        async with anyio.create_task_group() as serving:
            serving.start_soon(serve)
            try:
                async with MemoryStream(to_server, at_peer) as stream:
                    yield stream
            except BaseException as error:
                if is_cancellation(error):
                    raise

                failure = error  # raised below, outside of the group that would wrap it

            serving.cancel_scope.cancel()

        if failure is not None:
            raise failure
