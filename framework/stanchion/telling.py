"""What a call tells its client while it runs: log messages, progress, and what else there is."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from .log_floor import LogFloor, LogLevel, encode_log_data, is_as_severe, is_log_level
from .protocol import META_LOG_LEVEL, META_PROGRESS_TOKEN, Era
from .streaming import Stream
from .wire import encode_notification, unicode_text

if TYPE_CHECKING:
    from .peer import Connection, Peer

Send = Callable[[bytes], Awaitable[None]]
"""What a transport gives the kernel to write one frame to the peer, in order."""

CHUNK_STEP = 2.0**-20
"""How far a chunk of a stream moves the progress: so little that it hides no real progress."""


class Telling:
    """The part of a call that sends; set up by `Call`, for speed.

    Attributes:
        connection: Where the call came from, or None for a call by itself; the kernel's.
        meta: The request's `_meta`.
        peer: Who sent it.
        on_alive: Is told whenever the handler shows that it gets on; for a layer that waits no
            longer than so long for that.
    """

    __slots__ = ("_progress", "_send", "connection", "meta", "on_alive", "peer")

    _progress: tuple[float, float | None] | None  # the number, and of how much
    _send: Send | None
    connection: Connection | None
    meta: Mapping[str, Any]
    on_alive: Callable[[], None] | None
    peer: Peer

    @property
    def log_floor(self) -> LogFloor:
        """The least severe log level that a legacy peer wants; kept by its connection."""
        return LogFloor() if self.connection is None else self.connection.log_floor

    @property
    def progress_token(self) -> str | int | None:
        """The token that the client gave for progress, or None if it wants none."""
        token = self.meta.get(META_PROGRESS_TOKEN)
        # A boolean is an int in Python and is no token in MCP.
        return token if isinstance(token, str | int) and not isinstance(token, bool) else None

    @property
    def send(self) -> Send | None:
        """How a frame reaches the peer, or None where none can any more; the kernel's."""
        return self._send

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send the peer a notification that belongs to this call.

        Does nothing on a transport that cannot send one, and nothing after the call has ended.
        Waits while the peer reads more slowly than it is sent to.
        """
        if self._send is not None:
            await self._send(encode_notification(method, params))

    async def log(self, level: LogLevel, data: Any, logger: str | None = None) -> None:
        """Send the client a log message, if it wants messages of *level*.

        A legacy client is sent those at or above the level that it set with `logging/setLevel`
        for its stream or session, and before that `info` and above. A modern client is sent
        those at or above the level that this very request names, and none without. Nothing is
        sent after the call has ended, nor on a transport that cannot send.

        The client sees *data* as it stands: keep secrets, personal data and internals of the
        server out of it. Nothing here redacts.

        Args:
            level: One of the eight levels of RFC 5424, such as `warning`.
            data: Any JSON value; what JSON has no form for is sent as its `str`, cut to 10,000
                characters.
            logger: What the message is from, or None.

        Raises:
            ValueError: *level* is none of the eight.

        Source: MCP 2025-11-25 and 2026-07-28, server/utilities/logging.
        """
        if not is_log_level(level):
            raise ValueError(f"{level!r} is no log level")

        if self._send is None or not self._wants_log(level):
            return

        params: dict[str, Any] = {"level": level, "data": encode_log_data(data)}
        if logger is not None:
            params["logger"] = unicode_text(logger)

        await self.notify("notifications/message", params)

    def _wants_log(self, level: str) -> bool:
        if self.peer.era is Era.LEGACY:
            return is_as_severe(level, self.log_floor.get())

        floor = self.meta.get(META_LOG_LEVEL)  # the gate lets in nothing but levels
        return floor is not None and is_as_severe(level, floor)

    def alive(self) -> None:
        """Say that the call gets on, without a word to the client; `progress` says it, too."""
        if self.on_alive is not None:
            self.on_alive()

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell the client how far the call is, if it asked to be told.

        Nothing is sent without a token of the client's own, nor where *progress* does not
        exceed what was sent before: branches that run side by side may report out of order, and
        the protocol wants the number to rise. Nor is a *progress* sent that is not finite.

        Args:
            progress: How much is done, in any unit.
            total: How much there is in the same unit, if that is known; left out where it is not
                finite.
            message: What happens now, in words.

        Source: MCP 2026-07-28, basic/utilities/progress.
        """
        self.alive()
        # JSON has no form for NaN and the infinities.
        if self.progress_token is None or not math.isfinite(progress):
            return

        if self._progress is not None and progress <= self._progress[0]:
            return

        if total is not None and not math.isfinite(total):
            total = None

        self._progress = (progress, total)
        await self._send_progress(message)

    def stream(self) -> Stream:
        """Give a stream that sends the client content while the call runs; see `Stream`."""
        return Stream(self)

    async def release_connection(self, retry_after: float = 1.0) -> None:
        """Let go of the connection that waits for this call, which runs on.

        For calls that are long and say little: the client comes back after *retry_after* seconds
        for what it has missed, and for the result. Does nothing where it cannot come back, which
        is everywhere but over Streamable HTTP in a session of 2025-11-25.

        Args:
            retry_after: Seconds that the client is asked to stay away, 0 or more.

        Raises:
            ValueError: *retry_after* is negative or not finite.

        Source: MCP 2025-11-25, basic/transports, "Sending Messages to the Server".
        """
        if not 0 <= retry_after < math.inf:
            raise ValueError("retry_after must be 0 or more, and finite")

        if self._send is not None and self.connection is not None:
            release = self.connection.release
            if release is not None:
                await release(retry_after)

    async def send_chunk(self, message: str | None, meta: Mapping[str, Any]) -> None:
        """Send a chunk as the next progress notification, *meta* as its `_meta`; for `Stream`.

        The number rises by about a millionth and the total stays, so that what the handler
        itself reports with `progress` is still seen. Nothing is sent without a token.
        """
        if self.progress_token is None:
            return

        number, total = 0.0, None
        if self._progress is not None:
            last, total = self._progress
            number = max(last + CHUNK_STEP, math.nextafter(last, math.inf))

        self._progress = (number, total)
        await self._send_progress(message, meta)

    async def _send_progress(
        self, message: str | None, meta: Mapping[str, Any] | None = None
    ) -> None:
        number, total = self._progress or (0.0, None)
        params: dict[str, Any] = {"progressToken": self.progress_token, "progress": number}
        if total is not None:
            params["total"] = total

        if message is not None:
            params["message"] = unicode_text(message)

        if meta is not None:
            params["_meta"] = meta

        await self.notify("notifications/progress", params)
