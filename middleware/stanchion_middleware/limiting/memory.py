"""Counts in memory: for one process, and bounded."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import islice
from math import inf
from typing import Final

from stanchion import ConfigurationError, Unavailable

from .rate import Rate
from .storage import LimitStorage, Standing
from .window import WINDOWS, Window

logger = logging.getLogger("stanchion.rate_limit")

LOOKED_AT: Final = 32
"""Buckets that are looked at when room is needed, those first that were looked at longest ago."""

QUIET: Final = 60.0
"""Seconds for which a full storage is not told again."""


class MemoryLimits(LimitStorage):
    """Keeps counts in this process, as `storage="memory://"`.

    The memory storage of `limits` keeps every key until a task of its own finds it expired, has no
    bound, reads the time of day, and cannot count by several keys at once; so this is not built
    on it, but counts by the same rules.

    What a caller could gain by a flood of new keys is what decides who makes room for them: first
    buckets in which nothing counts any more, then, of some that were looked at longest ago, those
    with most left, whose callers gain what they could have used in any case. A bucket that refuses
    is never dropped, or who is refused could get itself a new one. Where only such are found, the
    storage is full: callers without a bucket are then treated as `RateLimit(fail=...)` says, and
    the log says so, at most once a minute.
    """

    def __init__(
        self, *, max_slots: int = 100_000, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Describe the storage.

        Args:
            max_slots: Buckets that are kept, 64 or more; with `moving-window` each call that is
                remembered counts as one more. A slot takes about 500 bytes.
            clock: Gives the time in seconds; it may step, also back.

        Raises:
            ConfigurationError: *max_slots* is out of range.
        """
        if max_slots < 64:
            raise ConfigurationError("MemoryLimits: max_slots must be 64 or more")

        self._max_slots = max_slots
        self._clock = clock
        self._windows: OrderedDict[str, Window] = OrderedDict()
        self._slots = 0
        self._told_at = -inf

    def __len__(self) -> int:
        """Give how many slots are taken."""
        return self._slots

    async def take(
        self, keys: Sequence[str], rates: Sequence[Rate], weight: int
    ) -> Sequence[Standing]:
        """As `LimitStorage.take`; it never waits.

        Raises:
            Unavailable: There is no room for another bucket.
        """
        now = self._clock()
        windows = self._windows
        found: list[Window] = []
        waits: list[float] = []
        grows = refused = False
        for key, rate in zip(keys, rates):  # noqa: B905 # one key a rate; strict costs a call
            window = windows.get(key)
            if window is None:
                window = WINDOWS[rate.strategy](now, rate)
                grows = True
            else:
                window.rate = rate
                grows = grows or window.grows

            wait = window.wait(now, weight)
            refused = refused or wait > 0
            found.append(window)
            waits.append(wait)

        if refused:
            return [
                Standing(window.remaining(now), window.reset(now), wait)
                for window, wait in zip(found, waits, strict=True)
            ]

        if grows:
            self._make_room(now, keys)

        for window in found:
            window.add(now, weight)

        if grows:
            for key, window in zip(keys, found, strict=True):
                windows[key] = window
                self._recount(window, window.slots)

        return ()

    def _recount(self, window: Window, slots: int) -> None:
        self._slots += slots - window.counted
        window.counted = slots

    def _make_room(self, now: float, keys: Sequence[str]) -> None:
        """See to it that each of *keys* can get two more slots."""
        most = self._max_slots - 2 * len(keys)
        short = self._slots > most
        droppable: list[tuple[float, str]] = []
        # Two even where there is room, so that what has expired goes as new ones come.
        for key in list(islice(self._windows, LOOKED_AT if short else 2)):
            window = self._windows[key]
            if window.over(now):
                self._drop(key)
            else:
                self._windows.move_to_end(key)
                if short and key not in keys and not window.wait(now, 1):
                    droppable.append((window.remaining(now) / window.rate.amount, key))

        droppable.sort(reverse=True)
        # Some more than this call needs, or a flood would make each new caller look at so many.
        enough = most - min(LOOKED_AT // 2, self._max_slots // 1000)
        for _, key in droppable:
            if self._slots <= enough:
                break

            self._drop(key)

        if self._slots > most:
            self._tell(now)
            raise Unavailable("there is no room to count another caller", retry_after=1.0)

    def _drop(self, key: str) -> None:
        self._recount(self._windows.pop(key), 0)

    def _tell(self, now: float) -> None:
        if not 0 <= now - self._told_at < QUIET:
            self._told_at = now
            logger.warning(
                "rate limits: all %d slots are taken by callers over their limit; whoever is new "
                "is treated as RateLimit(fail=...) says",
                self._max_slots,
            )
