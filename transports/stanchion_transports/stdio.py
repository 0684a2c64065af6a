"""Frames over standard input and output: one client, one line a message.

    stdin ─▶ Source ─▶ Lines ─▶ serve_stream ─▶ Sink ─▶ stdout

While a server is served so, its real standard input and output are the stream's alone: a stray
`print` goes to standard error, and a child process reads nothing and writes there too.

Source: MCP 2025-11-25 and 2026-07-28, basic/transports, "stdio".
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Literal, Self

import anyio

from stanchion import ConfigurationError, Connection, InvalidRequest, Server, serve_stream

from .descriptors import Sink, Source, claim
from .ending import ProcessEnd
from .lines import Lines

logger = logging.getLogger("stanchion.stdio")

MAX_FRAME: Final = 16 * 1024 * 1024

GRACE: Final = 0.5
DRAIN: Final = 0.3
CLOSING: Final = 5.0


async def serve(
    server: Server,
    *,
    stdin: int = 0,
    stdout: int = 1,
    max_frame: int = MAX_FRAME,
    grace: float = GRACE,
    drain: float = DRAIN,
    stop: anyio.Event | None = None,
) -> None:
    """Serve the peer at the other end of two file descriptors until it goes away.

    Handles no signals and ends no process; `run` does. While it serves, the two descriptors are
    turned away, as `descriptors.claim` says; afterwards they are as before.

    Args:
        server: The server; it is started here, or used as it runs.
        stdin: What to read. A regular file is read in a worker thread.
        stdout: What to write.
        max_frame: Bytes of the longest line that is taken, 1 or more; a longer one is skipped
            and answered with an error.
        grace: Seconds that running calls have once the peer has gone, 0 or more.
        drain: Seconds that they have once *stop* is set, 0 or more.
        stop: When it is set, nothing more is read and the server is drained.

    Raises:
        ConfigurationError: An option is out of range, or the server is not servable.
        OSError: A descriptor is not open.
    """
    _check(max_frame, grace, drain)
    with claim(stdin, stdout) as (reading, writing):
        async with server:
            stream = _Stdio(server, reading, writing, max_frame=max_frame, drain=drain)
            await stream.serve(grace, stop)


def run(
    server: Server,
    *,
    max_frame: int = MAX_FRAME,
    grace: float = GRACE,
    drain: float = DRAIN,
    closing: float = CLOSING,
    backend: Literal["asyncio", "trio"] = "asyncio",
    backend_options: Mapping[str, Any] | None = None,
) -> None:
    """Serve this process's standard input and output until the client goes away; blocks.

    SIGTERM, SIGINT and SIGHUP drain the server; a second one ends the process at once. After
    the end of the input, or a signal, the process is ended even if a call, the event loop or a
    thread is stuck. If threads that are no daemons are left when this function returns, the
    program has a fraction of a second to end by itself.

    In another thread than the main one it only serves: signals and process are left alone.

    Args:
        server: The server.
        max_frame: As for `serve`.
        grace: As for `serve`.
        drain: As for `serve`, after a signal.
        closing: Seconds that the server's layers and its lifespan have to close, 0 or more.
        backend: The event loop.
        backend_options: What anyio passes to it, such as `{"use_uvloop": True}`.

    Raises:
        ConfigurationError: An option is out of range, or the server is not servable.
        OSError: Standard input or output is closed.
    """
    _check(max_frame, grace, drain, closing)
    options = dict(backend_options or {})
    if threading.current_thread() is not threading.main_thread():
        serving = partial(serve, server, max_frame=max_frame, grace=grace, drain=drain)
        anyio.run(serving, backend=backend, backend_options=options)
        return

    with claim(0, 1) as (reading, writing), ProcessEnd(grace, drain, closing) as end:

        async def main() -> None:
            stop = anyio.Event()
            async with server, anyio.create_task_group() as watching:
                watching.start_soon(end.watch_signals, stop.set)
                stream = _Stdio(
                    server, reading, writing, max_frame=max_frame, drain=drain, on_end=end.of_input
                )
                await stream.serve(grace, stop)
                watching.cancel_scope.cancel()
                end.of_calls()

            end.of_server()

        anyio.run(main, backend=backend, backend_options=options)


def _check(max_frame: int, *seconds: float) -> None:
    if max_frame < 1 or min(seconds) < 0:
        raise ConfigurationError("stdio needs max_frame >= 1, and no negative seconds")


class _Stdio:
    """One peer's lines as frames, until it goes away or the server stops.

    An object with `__anext__` and no generator, because nobody closes a generator whose loop was
    cancelled.
    """

    def __init__(
        self,
        server: Server,
        reading: int,
        writing: int,
        *,
        max_frame: int,
        drain: float,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        self._server = server
        self._source = Source(reading)
        self._sink = Sink(writing)
        self._lines = Lines(max_frame)
        self._drain = drain
        self._on_end = on_end
        self._ready: deque[bytes | InvalidRequest] = deque()
        self._ended = False
        self._broken = False
        self._stopping = False

    async def serve(self, grace: float, stop: anyio.Event | None) -> None:
        async with anyio.create_task_group() as watching:
            if stop is not None:
                watching.start_soon(self._stop_after, stop)

            await serve_stream(self._server, Connection("stdio"), self, self._write, grace=grace)
            watching.cancel_scope.cancel()

    async def _stop_after(self, stop: anyio.Event) -> None:
        await stop.wait()
        self._stopping = True
        self._source.stop()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes | InvalidRequest:
        while not self._ready and not self._ended:
            await self._read()

        # What a peer asked that is gone, and reads no answer, is better not done.
        if self._ready and not self._broken:
            return self._ready.popleft()

        if self._stopping:
            await self._server.drain(self._drain)

        self._on_end()
        raise StopAsyncIteration

    async def _read(self) -> None:
        try:
            chunk = await self._source.read()
        except OSError as error:  # a reset socket, a terminal that hung up
            logger.info("the input broke off: %s", error)
            chunk = b""

        if chunk:
            self._ready.extend(self._lines.feed(chunk))
            return

        self._ended = True
        if not self._source.stopped:
            self._ready.extend(self._lines.finish())

    async def _write(self, frame: bytes) -> None:
        if self._broken:
            return

        try:
            await self._sink.write(frame)
        except OSError as error:  # nobody reads any more, or the file's disk is full
            logger.info("the output broke off: %s", error)
            self._broken = True
            self._source.stop()
