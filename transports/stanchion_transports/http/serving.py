"""Serving over uvicorn: the socket, the signals and the drain."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

import anyio
import anyio.abc
import uvicorn

from stanchion import ConfigurationError, Server

from ..ending import ProcessEnd
from .app import MAX_BODY, app
from .listener import listen, listen_unix

logger = logging.getLogger("stanchion.http")

Parser = Literal["auto", "h11", "httptools"]

DRAIN = 10.0
CLOSING = 5.0

CLOSE_GRACE = 2
"""Seconds that uvicorn has to close connections once no call runs."""

CANCEL_GRACE = 1.0
"""Seconds that requests have to end once they are cancelled; a shielded one may take none."""

TICKS = 1.0
"""Seconds within which uvicorn surely sees that it shall stop; it looks every tenth of one."""


async def serve(
    server: Server,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    unix_socket: str | os.PathLike[str] | None = None,
    parser: Parser = "auto",
    drain: float = DRAIN,
    backlog: int = 2048,
    task_status: anyio.abc.TaskStatus[str] = anyio.TASK_STATUS_IGNORED,
    **options: Any,
) -> None:
    """Serve *server* over HTTP until it is cancelled or a signal stops it.

    SIGTERM and Ctrl+C first make `/readyz` answer 503 and refuse new calls, then give running
    calls *drain* seconds, stop the rest with an answer, and close. A second signal ends at once.
    Ends no process; `run` does. Needs asyncio, because uvicorn does.

    Args:
        server: The server; it is started here, or used as it runs.
        host: The address to listen on.
        port: The port, or 0 for a free one.
        unix_socket: Where to listen in the file system, instead of *host* and *port*. Only the
            process's own user may connect, unless the file's mode is changed.
        parser: uvicorn's HTTP parser.
        drain: Seconds that running calls have after a signal.
        backlog: Connections that wait to be accepted.
        task_status: Is told the endpoint's URL once it accepts connections; with *unix_socket*
            it begins with `http+unix://` and the path, percent-encoded.
        options: What `app` takes.

    Raises:
        ConfigurationError: The server or an option is not servable.
        OSError: The address cannot be listened on.
    """
    stop = partial(_stop_on_signal, server=server, drain=drain)
    await _serve(
        server,
        host=host,
        port=port,
        unix_socket=unix_socket,
        parser=parser,
        backlog=backlog,
        options=options,
        stop=stop,
        on_started=task_status.started,
    )


def run(
    server: Server,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    unix_socket: str | os.PathLike[str] | None = None,
    parser: Parser = "auto",
    drain: float = DRAIN,
    closing: float = CLOSING,
    backlog: int = 2048,
    **options: Any,
) -> None:
    """Serve *server* over HTTP and block; what `server.run("http", ...)` calls.

    As `serve`, and after a signal the process is ended even if a call, the event loop or a
    thread is stuck. If threads that are no daemons are left when this function returns, the
    program has a fraction of a second to end by itself.

    In another thread than the main one it only serves: signals and process are left alone.

    Args:
        server: The server.
        host: As for `serve`.
        port: As for `serve`.
        unix_socket: As for `serve`.
        parser: As for `serve`.
        drain: As for `serve`.
        closing: Seconds that the server's layers and its lifespan have to close, 0 or more.
        backlog: As for `serve`.
        options: What `app` takes.

    Raises:
        ConfigurationError: The server or an option is not servable.
        OSError: The address cannot be listened on.
    """
    backend = {"use_uvloop": _has_uvloop()}
    if threading.current_thread() is not threading.main_thread():
        options.update(
            host=host,
            port=port,
            unix_socket=unix_socket,
            parser=parser,
            drain=drain,
            backlog=backlog,
        )
        anyio.run(partial(serve, server, **options), backend="asyncio", backend_options=backend)
        return

    with ProcessEnd(TICKS + CLOSE_GRACE + CANCEL_GRACE, drain, closing) as end:

        async def stop(listening: _Uvicorn) -> None:
            signalled = anyio.Event()
            async with anyio.create_task_group() as watching:
                watching.start_soon(end.watch_signals, signalled.set)
                await signalled.wait()
                await _drain(listening, server, drain)

        async def main() -> None:
            await _serve(
                server,
                host=host,
                port=port,
                unix_socket=unix_socket,
                parser=parser,
                backlog=backlog,
                options=options,
                stop=stop,
                on_closed=end.of_calls,
            )
            end.of_server()

        anyio.run(main, backend="asyncio", backend_options=backend)


async def _serve(
    server: Server,
    *,
    host: str,
    port: int,
    unix_socket: str | os.PathLike[str] | None,
    parser: Parser,
    backlog: int,
    options: dict[str, Any],
    stop: Stop,
    on_started: Callable[[str], None] = lambda _: None,
    on_closed: Callable[[], None] = lambda: None,
) -> None:
    application = app(server, **options)
    path: str = options.get("path", "/mcp")
    config = uvicorn.Config(
        application,
        http=parser,
        lifespan="off",
        ws=_websocket_library() if application.has_websockets else "none",
        ws_max_size=options.get("max_body", MAX_BODY),
        access_log=False,
        log_level="warning",
        log_config=None,
        server_header=False,
        # Who trusts a proxy's headers asks for the address of the proxy, which this would replace.
        proxy_headers=False,
        timeout_graceful_shutdown=CLOSE_GRACE,
    )

    opened = (
        listen(host, port, backlog) if unix_socket is None else listen_unix(unix_socket, backlog)
    )
    with opened as listener:
        url = _authority(host, listener) + path

        def started() -> None:
            logger.info("serving %s", url)
            on_started(url)

        listening = _Uvicorn(config, started, application.end_listens)
        async with application.lifespan():
            async with anyio.create_task_group() as group:
                group.start_soon(stop, listening)
                await listening.serve(sockets=[listener])
                group.cancel_scope.cancel()

            on_closed()


class _Uvicorn(uvicorn.Server):
    """uvicorn, told when to stop by us instead of by signals."""

    def __init__(
        self,
        config: uvicorn.Config,
        started: Callable[[], None],
        stopping: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._on_started = started
        self._on_stopping = stopping

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the connections, once the streams that would stay open have ended."""
        self._on_stopping()
        await super().shutdown(sockets)

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until told to stop or cancelled; either way no connection is left open."""
        try:
            await super().serve(sockets)
        except asyncio.CancelledError:
            # uvicorn would leave its connections as they are.
            if self.started:
                with anyio.CancelScope(shield=True):
                    await self.shutdown(sockets)

            raise
        finally:
            if tasks := self.server_state.tasks:
                for task in tasks:
                    task.cancel()

                with anyio.CancelScope(shield=True):
                    await asyncio.wait(tasks, timeout=CANCEL_GRACE)


Stop: TypeAlias = Callable[[_Uvicorn], Coroutine[Any, Any, None]]
"""Waits until it is time, and has uvicorn stop."""


async def _stop_on_signal(listening: _Uvicorn, *, server: Server, drain: float) -> None:
    if threading.current_thread() is not threading.main_thread():
        return  # signals go to the main thread; whoever runs us elsewhere stops us

    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with anyio.create_task_group() as draining:
            async for _ in signals:
                if server.draining:
                    listening.force_exit = listening.should_exit = True
                    draining.cancel_scope.cancel()
                    return

                draining.start_soon(_drain, listening, server, drain)


async def _drain(listening: _Uvicorn, server: Server, grace: float) -> None:
    logger.info("draining: running calls have %g s", grace)
    await server.drain(grace)
    listening.should_exit = True


def _authority(host: str, listener: socket.socket) -> str:
    name: Any = listener.getsockname()
    if isinstance(name, str):
        return f"http+unix://{quote(name, safe='')}"

    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{name[1]}"


def _websocket_library() -> Literal["auto"]:
    if not any(importlib.util.find_spec(name) for name in ("websockets", "wsproto")):
        raise ConfigurationError(
            "WebSocket needs a library that uvicorn knows: install stanchion[websocket]"
        )

    return "auto"


def _has_uvloop() -> bool:
    return importlib.util.find_spec("uvloop") is not None
