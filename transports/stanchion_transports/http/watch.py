"""Notices, for all exchanges at once, clients that go away and streams that fall silent.

Most calls end within milliseconds, and neither a timer nor a second task for each would be
worth its cost. So one task looks at the running exchanges now and then; only one that has
lasted is watched by a task of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Protocol, Self

import anyio
import anyio.abc

from stanchion import ConfigurationError

LOOK_EVERY = 0.1
"""Seconds between two looks; a client that goes away is noticed within twice that."""

logger = logging.getLogger("stanchion.http")


class Watched(Protocol):
    """An exchange as the watch sees it."""

    seen: bool
    watching: bool

    async def watch_disconnect(self) -> None:
        """Wait until the client goes away, and cancel what it asked for."""
        ...

    def end_listens(self) -> None:
        """Have an open listen be answered."""
        ...

    def is_silent(self, now: float) -> bool:
        """Say whether nothing was sent for so long that a sign of life is due."""
        ...

    async def keep_alive(self) -> None:
        """Send a sign of life."""
        ...


class Watch:
    """Looks at the exchanges that are running.

    Within `async with`, `add` an exchange when it starts and `discard` it when it ends.
    """

    def __init__(self, *chores: tuple[Callable[[], object], float]) -> None:
        """Take what is to be done now and then.

        Args:
            chores: Functions that neither block nor fail, each with the seconds between two runs.
        """
        self._chores = chores
        self._running: set[Watched] = set()
        self._asleep = True
        self._wake = anyio.Event()
        self._group: anyio.abc.TaskGroup | None = None

    async def __aenter__(self) -> Self:
        self._wake = anyio.Event()
        self._asleep = True
        self._group = anyio.create_task_group()
        await self._group.__aenter__()
        self._group.start_soon(self._look, self._group)
        for chore, every in self._chores:
            self._group.start_soon(_repeat, chore, every)

        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._group is not None:
            self._group.cancel_scope.cancel()
            await self._group.__aexit__(kind, error, traceback)
            self._group = None

    def add(self, exchange: Watched) -> None:
        """Watch *exchange* from the next look on.

        Raises:
            ConfigurationError: Nothing watches, because the application's life does not run.
        """
        if self._group is None:
            raise ConfigurationError(
                "the application's life does not run: pass lifespan=app.lifespan to the "
                "application that mounts it"
            )

        self._running.add(exchange)
        if self._asleep:
            self._asleep = False
            self._wake.set()

    def discard(self, exchange: Watched) -> None:
        """Stop watching *exchange*."""
        self._running.discard(exchange)

    def end_listens(self) -> None:
        """Have every open listen be answered; left open, it would hold up the end of serving."""
        for exchange in self._running:
            exchange.end_listens()

    async def _look(self, group: anyio.abc.TaskGroup) -> None:
        while True:
            await self._wake.wait()
            while self._running:
                await anyio.sleep(LOOK_EVERY)
                self._look_once(group)

            self._wake = anyio.Event()
            self._asleep = True

    def _look_once(self, group: anyio.abc.TaskGroup) -> None:
        now = anyio.current_time()
        for exchange in self._running:
            if not exchange.seen:
                exchange.seen = True  # most are gone by the next look
                continue

            if not exchange.watching:
                exchange.watching = True
                group.start_soon(_guarded, exchange.watch_disconnect)

            if exchange.is_silent(now):
                group.start_soon(_guarded, exchange.keep_alive)


async def _repeat(chore: Callable[[], object], every: float) -> None:
    while True:
        await anyio.sleep(every)
        chore()


async def _guarded(step: Callable[[], Awaitable[None]]) -> None:
    try:
        await step()
    except Exception:
        # One broken connection must not end the watch over all others.
        logger.debug("watching a connection failed", exc_info=True)
