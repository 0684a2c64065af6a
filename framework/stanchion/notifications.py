"""Handlers of what clients tell the server without asking for anything."""

from __future__ import annotations

import inspect
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import anyio

from .background import Background
from .cancellation import is_cancellation
from .client_notification import ClientNotification
from .errors import ConfigurationError
from .handler import innermost, name_of
from .names import check_notification_name, is_custom
from .protocol import VERSIONS, Method

MAX_NAMES: Final = 100
"""Notifications with handlers, on one server."""

MAX_HANDLERS: Final = 16
"""Handlers of one notification."""

logger = logging.getLogger("stanchion.notifications")

NotificationHandler: TypeAlias = Callable[[ClientNotification], Awaitable[object]]
"""What `@server.on_notification` takes: an async function of one notification."""


@dataclass(frozen=True, slots=True)
class NotificationCounts:
    """How many handler runs there were, since the server was made.

    Attributes:
        finished: Runs that returned.
        failed: Runs that raised or took too long; the log has each.
        dropped: Runs that never began: too many waited, or the server was stopping.
        cancelled: Runs that were stopped with the server.
        running: Runs under way.
        waiting: Runs that wait for one of those to end.
    """

    finished: int
    failed: int
    dropped: int
    cancelled: int
    running: int
    waiting: int


@dataclass(frozen=True, slots=True)
class _Handler:
    function: NotificationHandler
    timeout: float


class NotificationHandlers:
    """The notification handlers of a server, and their runs.

    Each handler of a notification runs by itself, beside everything else, so runs may end in
    another order than the notifications came in. At most `max_running` run at once over all
    peers, at most `max_waiting` wait, and what comes on top is dropped and counted. A client
    that floods gets no answer and costs bounded memory, but others' notifications are dropped
    with its own. Nothing that a handler raises goes anywhere but into the log.

    Attributes:
        max_running: Runs at once, 1 or more.
        max_waiting: Runs that wait, 0 or more.
        custom: `{name: row}` of the notifications that are none of the protocol's.
    """

    def __init__(self, *, max_running: int = 32, max_waiting: int = 1024) -> None:
        self.max_running = max_running
        self.max_waiting = max_waiting
        self.custom: dict[str, Method] = {}
        self._handlers: dict[str, list[_Handler]] = {}
        self._waiting: deque[tuple[_Handler, ClientNotification]] = deque()
        self._background = Background()
        self._running = 0
        self._finished = self._failed = self._dropped = self._cancelled = 0

    def __len__(self) -> int:
        return len(self._handlers)

    def add(self, name: str, function: NotificationHandler, timeout: float) -> None:
        """Have *function* run for every notification called *name*.

        Raises:
            ConfigurationError: The name is none that a client may send, the handler is not
                async, the timeout is out of range, or there are too many names or handlers.
        """
        check_notification_name(name)
        if not (math.isfinite(timeout) and timeout > 0):
            raise ConfigurationError(f"notification {name!r}: timeout must be more than 0 seconds")

        if not inspect.iscoroutinefunction(innermost(function)):
            raise ConfigurationError(
                f"notification {name!r}: {name_of(function)} must be `async def handler(note)`"
            )

        handlers = self._handlers.get(name, [])
        if len(handlers) >= MAX_HANDLERS:
            raise ConfigurationError(f"notification {name!r} has {MAX_HANDLERS} handlers already")

        if not handlers and len(self._handlers) >= MAX_NAMES:
            raise ConfigurationError(f"{MAX_NAMES} notifications have handlers already")

        self._handlers[name] = [*handlers, _Handler(function, timeout)]
        if is_custom(name):
            self.custom[name] = Method(name, VERSIONS)

    def handles(self, name: str) -> bool:
        """Say whether a notification called *name* has a handler."""
        return name in self._handlers

    def deliver(self, note: ClientNotification) -> None:
        """Start the handlers of *note*, or let them wait, or drop and count them."""
        for handler in self._handlers.get(note.method, ()):
            if not self._background.is_open:
                self._dropped += 1
            elif self._running < self.max_running:
                self._running += 1
                self._background.start_soon(self._work, handler, note)
            elif len(self._waiting) < self.max_waiting:
                self._waiting.append((handler, note))
            else:
                self._dropped += 1

    @property
    def counts(self) -> NotificationCounts:
        """How many runs there were and are."""
        return NotificationCounts(
            self._finished,
            self._failed,
            self._dropped,
            self._cancelled,
            self._running,
            len(self._waiting),
        )

    async def __aenter__(self) -> None:
        """Be ready for notifications; where nothing handles any, that costs nothing.

        Raises:
            ConfigurationError: `max_running` or `max_waiting` is out of range.
        """
        if self.max_running < 1 or self.max_waiting < 0:
            raise ConfigurationError("max_running must be 1 or more, and max_waiting 0 or more")

        if self._handlers:
            await self._background.__aenter__()

    async def __aexit__(self, *raised: object) -> None:
        """Cancel the runs, and drop those that wait."""
        self._dropped += len(self._waiting)
        self._waiting.clear()
        if self._handlers:
            await self._background.__aexit__()

    async def _work(self, handler: _Handler, note: ClientNotification) -> None:
        try:
            await self._run(handler, note)
            while self._waiting:
                await self._run(*self._waiting.popleft())
        finally:
            self._running -= 1

    async def _run(self, handler: _Handler, note: ClientNotification) -> None:
        try:
            with anyio.move_on_after(handler.timeout) as scope:
                await handler.function(note)
        except BaseException as error:
            if is_cancellation(error):
                self._cancelled += 1
                raise

            self._failed += 1
            logger.error("a handler of %s failed", note.method, exc_info=error)  # noqa: TRY400
        else:
            if scope.cancelled_caught:
                self._failed += 1
                logger.error("a handler of %s took over %g s", note.method, handler.timeout)
            else:
                self._finished += 1
