"""Dispatch: batches in order to one receiver, and what is done with those that it refuses."""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

import anyio
import anyio.to_thread

from stanchion import ConfigurationError

from .entry import Entry
from .receiver import Away, Receiver

logger = logging.getLogger("stanchion.audit")

LONGEST_PAUSE: Final = 60.0
"""Seconds between two tries, where the receiver asks for no longer ones."""


class Form(Protocol):
    """How a batch is written into a request, and what the answer to it means.

    Attributes:
        content_type: The media type of the request.
        refused: Status codes that a batch gets for what it holds, so that it will never be taken.
    """

    content_type: str
    refused: frozenset[int]

    def encode(self, entries: Sequence[Entry]) -> bytes:
        """Give the body of a request."""
        ...

    def unkept(self, answer: bytes) -> int:
        """Read an answer of success: how many of the entries were not kept all the same.

        Raises:
            ValueError: Whoever keeps entries does not answer so.
        """
        ...


class Dispatch:
    """Brings entries to a receiver, in order, and knows when to try again.

    A batch that the receiver refuses for what it holds is halved until the entry that it refuses
    stands alone, which is then rejected. Any other failure means that the receiver is away.

    Attributes:
        name: What the log calls it.
        keep: Keeps rejected entries, and says where; None only counts them.
        sent: Entries that the receiver took.
        rejected: Entries that it never will.
        not_before: The time on the loop's clock at which to try again.
    """

    def __init__(
        self, name: str, receiver: Receiver, form: Form, *, batch_size: int, first_pause: float
    ) -> None:
        """Take what batches are sent with.

        Args:
            name: What the log calls it.
            receiver: Where to.
            form: How.
            batch_size: Entries of a request, 1 or more.
            first_pause: Seconds until the second try, more than 0; doubled with each.

        Raises:
            ConfigurationError: An option is out of range.
        """
        if batch_size < 1:
            raise ConfigurationError(f"batch_size is {batch_size!r}, and must be 1 or more")

        if not 0 < first_pause <= LONGEST_PAUSE:
            raise ConfigurationError(
                f"first_pause is {first_pause!r}, and must be seconds from 0 to {LONGEST_PAUSE:g}"
            )

        self.name = name
        self.keep: Callable[[Sequence[Entry]], Awaitable[object]] | None = None
        self.sent = 0
        self.rejected = 0
        self.not_before = 0.0
        self._receiver = receiver
        self._form = form
        self._batch_size = batch_size
        self._first_pause = first_pause
        self._failures = 0
        self._refusal_told = False

    async def deliver(
        self, entries: Sequence[Entry], taken: Callable[[Sequence[Entry]], None]
    ) -> None:
        """Send *entries* in order; *taken* is told of each part that need not be sent again.

        Raises:
            Away: The rest was not taken.
            OSError: A rejected entry cannot be kept.
        """
        starts = range(0, len(entries), self._batch_size)
        waiting = [entries[start : start + self._batch_size] for start in reversed(starts)]
        while waiting:
            piece = waiting.pop()
            refusal = await self._refusal(piece)
            if refusal is None:
                self.sent += len(piece)
                taken(piece)
            elif len(piece) == 1:
                await self._reject(piece, 1, refusal)
                taken(piece)
            else:
                half = len(piece) // 2
                waiting += (piece[half:], piece[:half])

    async def _refusal(self, piece: Sequence[Entry]) -> str | None:
        """Send *piece*; gives why it will never be taken, or None where it was taken.

        Raises:
            Away: It may be taken later.
            OSError: Entries that were not kept cannot be kept here.
        """
        try:
            content = await anyio.to_thread.run_sync(self._form.encode, piece)
        except Exception as error:  # noqa: BLE001 # one entry must not hold up all later ones
            return f"it has no such form: {error!r}"

        answer = await self._receiver.post(content, self._form.content_type)
        if answer.status in self._form.refused:
            self._failures = 0  # it is there
            return f"status {answer.status}"

        if not 200 <= answer.status < 300:
            raise Away(f"answered with status {answer.status}", answer.retry_after)

        try:
            unkept = min(self._form.unkept(answer.body), len(piece))
        except ValueError as error:
            raise Away(f"answered what no such receiver does: {error}") from error

        self._is_back()
        if unkept:
            self.sent -= unkept
            await self._reject(piece, unkept, f"it did not keep {unkept} of {len(piece)}")

        return None

    async def _reject(self, entries: Sequence[Entry], count: int, reason: str) -> None:
        """Give up on *count* of *entries*; which, the receiver does not always say."""
        place = "no spool keeps them"
        if self.keep is not None:
            place = f"kept in {await self.keep(entries)}"

        self.rejected += count
        if not self._refusal_told:
            self._refusal_told = True
            first = entries[0]
            logger.error(
                "%s at %s refuses entries for good, from %s/%d on (%s): %s",
                *(self.name, self._receiver.host, first.chain, first.sequence, place, reason),
            )

    def stay_away(self, error: Away) -> None:
        """Take note of a failure: when to try again is known afterwards."""
        self._failures += 1
        pause = min(self._first_pause * 2.0 ** min(self._failures - 1, 30), LONGEST_PAUSE)
        # Not all replicas at the same moment.
        pause *= random.uniform(0.5, 1.0)  # noqa: S311 # no secret
        pause = max(pause, error.retry_after or 0.0)
        self.not_before = anyio.current_time() + pause
        if self._failures == 1:
            logger.warning("%s at %s is away: %s", self.name, self._receiver.host, error)

    def _is_back(self) -> None:
        if self._failures:
            logger.warning("%s at %s is back", self.name, self._receiver.host)

        self._failures = 0
        self._refusal_told = False
