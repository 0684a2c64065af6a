"""The line in front of the writer: what is known of calls that have ended, until it is sealed."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import anyio

from .entry import timestamp
from .record import Evidence

logger = logging.getLogger("stanchion.audit")

MAX_BATCH: Final = 500
MAX_BATCH_BYTES: Final = 4 * 2**20
"""Bounds on what is sealed at once, so that what it takes in memory is bounded too."""


class Ticket:
    """What somebody waits for: that a record is safe.

    Attributes:
        safe: Set once it is.
    """

    __slots__ = ("safe",)

    def __init__(self) -> None:
        self.safe = anyio.Event()


class Queued(NamedTuple):
    """A record in line.

    Attributes:
        evidence: What it is made of.
        ticket: Who waits for it, or None.
        slot: The slot of its call in the journal, 0 for none.
    """

    evidence: Evidence
    ticket: Ticket | None
    slot: int


class Losses:
    """Records that were not kept since the trail last said so.

    Attributes:
        count: How many.
    """

    def __init__(self) -> None:
        self.count = 0
        self._since = self._until = 0.0

    def add(self, at: float) -> None:
        """Count one, of a call that ended at that time."""
        self._since = self._since if self.count else at
        self._until = at
        self.count += 1

    def told(self) -> dict[str, Any]:
        """Give what the trail says of them."""
        return {
            "count": self.count,
            "reason": "queue full",
            "since": timestamp(self._since),
            "until": timestamp(self._until),
        }


class RecordQueue:
    """Records that wait, bounded in number and in bytes.

    It is full at its bounds. Whoever can turn calls away then does; calls that run already end
    all the same, so there is room twice, and only what is over is lost.

    Attributes:
        lost: Records that were not kept, since the start.
    """

    def __init__(self, max_records: int, max_bytes: int, free: Callable[[int], None]) -> None:
        """Bound it, within the event loop that uses it.

        Args:
            max_records: Records with which it is full.
            max_bytes: Bytes of arguments, and of results that are kept, with which it is.
            free: Frees a slot of the journal, once its call's record is safe or lost.
        """
        self._free = free
        self.lost = 0
        self._max_records = max_records
        self._max_bytes = max_bytes
        self._waiting: deque[Queued] = deque()
        self._taken = 0
        self._bytes = 0
        self._losses = Losses()
        self._oldest: float | None = None
        self._wake, self._urgent, self._room = anyio.Event(), anyio.Event(), anyio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def unsafe(self) -> int:
        """How many records are not safe yet, those that are being written too."""
        return len(self._waiting) + self._taken

    @property
    def oldest(self) -> float | None:
        """When the call ended whose record is not safe for longest; None where all are."""
        return self._oldest

    @property
    def full(self) -> bool:
        """Whether no call should be let in that will want a record."""
        return len(self._waiting) >= self._max_records or self._bytes >= self._max_bytes

    async def room(self) -> None:
        """Wait until it is not full."""
        while self.full:
            if self._room.is_set():
                self._room = anyio.Event()

            await self._room.wait()

    def put(self, evidence: Evidence, ticket: Ticket | None = None, slot: int = 0) -> bool:
        """Put a record in line; says no, and counts it as lost, where it is twice full."""
        waiting = self._waiting
        if len(waiting) >= 2 * self._max_records or self._bytes >= 2 * self._max_bytes:
            self.drop(evidence.at, slot)
            return False

        waiting.append(Queued(evidence, ticket, slot))
        self._bytes += evidence.weight
        if len(waiting) == 1:
            self._wake.set()
            if self._oldest is None:
                self._oldest = evidence.at

        if ticket is not None:
            self._urgent.set()

        return True

    def drop(self, at: float, slot: int = 0) -> None:
        """Count the record, of a call that ended at that time, as not kept."""
        self._free(slot)
        self.lost += 1
        self._losses.add(at)
        if self._losses.count == 1:  # once until the trail has said so
            logger.error("audit records are lost, because too many wait to be written")

    def rouse(self) -> None:
        """Have whoever waits for records look up, and not wait for more."""
        self._wake.set()
        self._urgent.set()

    async def wait(self, at_most: float, linger: float) -> None:
        """Wait for records.

        Args:
            at_most: Seconds to wait for the first.
            linger: Seconds to wait for more, unless somebody waits for one that is there.
        """
        if not self._waiting:
            with anyio.move_on_after(at_most):
                await self._wake.wait()

        if linger and self._waiting:
            with anyio.move_on_after(linger):
                await self._urgent.wait()

        self._wake, self._urgent = anyio.Event(), anyio.Event()

    def take(self) -> tuple[list[Queued], Losses]:
        """Give the first records, as many as are sealed at once, and what was lost before them."""
        batch: list[Queued] = []
        size = 0
        while self._waiting and len(batch) < MAX_BATCH and size < MAX_BATCH_BYTES:
            queued = self._waiting.popleft()
            batch.append(queued)
            size += queued.evidence.weight

        self._taken = len(batch)
        losses, self._losses = self._losses, Losses()
        return batch, losses

    def finished(self, batch: list[Queued]) -> None:
        """Tell who waits that what `take` gave is safe."""
        for queued in batch:
            self._bytes -= queued.evidence.weight
            self._free(queued.slot)
            if queued.ticket is not None:
                queued.ticket.safe.set()

        self._taken = 0
        self._oldest = self._waiting[0].evidence.at if self._waiting else None
        if not self.full:
            self._room.set()
