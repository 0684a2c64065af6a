"""Delivery: entries to one sink, tried until the sink has taken them."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final

import anyio

from stanchion import Reading, is_cancellation

from ..reporting import report_failure
from .entry import Entry
from .sink import AuditSink

logger = logging.getLogger("stanchion.audit")

FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 5.0
"""Seconds between two tries, doubled from the first to the longest."""

MAX_BATCH: Final = 500

Sleep = Callable[[float], Awaitable[None]]


class Delivery:
    """One sink, and how it fares.

    Attributes:
        sink: The sink.
        failing: Whether its last try failed.
        written: Entries that it has taken.
        lost: Entries that were not given to it, because too many waited.
        waiting: Entries that wait for it; only of sinks beside the first.
    """

    def __init__(self, sink: AuditSink, *, max_waiting: int, sleep: Sleep) -> None:
        """Bound it.

        Args:
            sink: The sink; whoever made it opens it.
            max_waiting: How many entries wait at most.
            sleep: Waits so many seconds.
        """
        self.sink = sink
        self.failing = False
        self.written = 0
        self.lost = 0
        self.waiting: deque[Entry] = deque()
        self._max_waiting = max_waiting
        self._sleep = sleep
        self._wake = anyio.Event()
        self._idle = anyio.Event()
        self._idle.set()

    def readings(self) -> Iterator[Reading]:
        """Give what the sink has taken, what it was not given, and whether it fails."""
        attributes = {"stanchion.audit.sink": self.sink.name}
        for name, value, description in (
            ("written", self.written, "Audit entries that a sink has taken."),
            ("lost", self.lost, "Audit entries that a sink was not given: too many waited."),
        ):
            full = f"stanchion.audit.sink.{name}"
            yield Reading(full, value, "{entry}", description, True, attributes)

        yield Reading(
            "stanchion.audit.sink.failing",
            int(self.failing),
            "1",
            "Whether an audit sink fails.",
            attributes=attributes,
        )

    async def give(self, entries: Sequence[Entry]) -> None:
        """Have the sink take *entries*, however often it fails; only a cancellation ends that."""
        pause = FIRST_PAUSE
        while True:
            try:
                await self.sink.write(entries)
            except BaseException as error:
                if is_cancellation(error):
                    raise

                self._failed()  # a sink is somebody else's, and may even try to exit
                await self._sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                self.written += len(entries)
                self._recovered()
                return

    def offer(self, entries: Sequence[Entry]) -> None:
        """Put *entries* in line, for `run`; the newest are lost where there is no room."""
        room = max(0, self._max_waiting - len(self.waiting))
        self.lost += max(0, len(entries) - room)
        self.waiting.extend(entries[:room])
        if self.waiting:
            if self._idle.is_set():
                self._idle = anyio.Event()

            self._wake.set()

    async def run(self) -> None:
        """Give the sink what waits, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake = anyio.Event()
            while self.waiting:
                batch = [self.waiting[place] for place in range(min(MAX_BATCH, len(self.waiting)))]
                await self.give(batch)
                for _ in batch:
                    self.waiting.popleft()

            self._idle.set()

    async def emptied(self) -> None:
        """Wait until nothing waits any more."""
        await self._idle.wait()

    def _failed(self) -> None:
        if not self.failing:  # once in an outage
            self.failing = True
            report_failure(
                logger, "audit sink %r fails, and is tried again until it works", self.sink.name
            )

    def _recovered(self) -> None:
        if self.failing:
            self.failing = False
            logger.warning("audit sink %r works again", self.sink.name)
