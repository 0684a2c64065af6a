"""The windows in which calls are counted in memory, one class for each strategy.

Each begins with its first call. The clock may step back: what was counted then counts from the
new time on, so nobody waits longer than a window and nobody gets a second quota.
"""

from __future__ import annotations

from collections import deque
from math import floor, inf
from typing import Final, Protocol

from .rate import Rate, Strategy


class Window(Protocol):
    """What one bucket has counted.

    Attributes:
        rate: The rate that was asked for last.
        grows: Whether each call takes room.
        counted: The slots that the storage has counted for it; the storage's.
    """

    rate: Rate
    grows: bool
    counted: int

    @property
    def slots(self) -> int:
        """What it takes of the storage's room, 1 or more."""
        ...

    def wait(self, now: float, weight: int) -> float:
        """Give the seconds until *weight* is admitted: 0.0 if now, infinite if never."""
        ...

    def add(self, now: float, weight: int) -> None:
        """Count *weight*; `wait` has just been asked."""
        ...

    def remaining(self, now: float) -> int:
        """Give the units that are left."""
        ...

    def reset(self, now: float) -> float:
        """Give the seconds until some of what was counted no longer counts."""
        ...

    def over(self, now: float) -> bool:
        """Say whether nothing that was counted still counts."""
        ...


class FixedWindow:
    """Counts from the first call on, and begins anew with the first one after its end."""

    __slots__ = ("count", "counted", "rate", "start")
    grows = False
    slots = 1

    def __init__(self, now: float, rate: Rate) -> None:
        self.rate = rate
        self.start = now
        self.count = 0
        self.counted = 0

    def wait(self, now: float, weight: int) -> float:
        """As `Window.wait`."""
        rate = self.rate
        start = self.start
        if not start <= now < start + rate.window:
            self._move(now)

        if self.count + weight <= rate.amount:
            return 0.0

        return inf if weight > rate.amount else self.start + rate.window - now

    def add(self, now: float, weight: int) -> None:
        """As `Window.add`."""
        self.count += weight

    def remaining(self, now: float) -> int:
        """As `Window.remaining`."""
        return max(0, self.rate.amount - self.count)

    def reset(self, now: float) -> float:
        """As `Window.reset`."""
        return max(0.0, self.start + self.rate.window - now)

    def over(self, now: float) -> bool:
        """As `Window.over`."""
        return self.count == 0 or now >= self.start + self.rate.window

    def _move(self, now: float) -> None:
        if now >= self.start:
            self.count = 0

        self.start = now


class SlidingWindow:
    """Counts in windows that follow each other, and weighs the one before by what is left of it.

    As the sliding window counter of `limits`, but the weighed count is not rounded down: at no
    moment is one call more admitted.
    """

    __slots__ = ("count", "counted", "previous", "rate", "start")
    grows = False
    slots = 1

    def __init__(self, now: float, rate: Rate) -> None:
        self.rate = rate
        self.start = now
        self.previous = 0
        self.count = 0
        self.counted = 0

    def wait(self, now: float, weight: int) -> float:
        """As `Window.wait`."""
        rate = self.rate
        start = self.start
        if not start <= now < start + rate.window:
            self._move(now)

        room = rate.amount - self.count - weight
        if room >= 0:
            if not self.previous:
                return 0.0

            window = rate.window
            left = self.start + window - now
            if self.previous * left <= room * window:
                return 0.0

            return left - room * window / self.previous

        if weight > rate.amount:
            return inf

        # Only once this window is the one before, and enough of it has gone.
        rest = rate.window * (1 - (rate.amount - weight) / self.count)
        return self.start + rate.window - now + rest

    def add(self, now: float, weight: int) -> None:
        """As `Window.add`."""
        self.count += weight

    def remaining(self, now: float) -> int:
        """As `Window.remaining`."""
        weighed = self.previous * self.reset(now) / self.rate.window
        return max(0, floor(self.rate.amount - self.count - weighed))

    def reset(self, now: float) -> float:
        """As `Window.reset`."""
        return max(0.0, self.start + self.rate.window - now)

    def over(self, now: float) -> bool:
        """As `Window.over`."""
        gone = now - self.start
        window = self.rate.window
        return gone >= 2 * window or (self.count == 0 and (self.previous == 0 or gone >= window))

    def _move(self, now: float) -> None:
        window = self.rate.window
        if now < self.start:
            self.start = now
        elif now < self.start + 2 * window:
            self.previous, self.count = self.count, 0
            self.start += window
        else:
            self.previous = self.count = 0
            self.start = now


class MovingWindow:
    """Remembers when each call came, and counts those within the window before now."""

    __slots__ = ("before", "counted", "entries", "rate")
    grows = True

    def __init__(self, now: float, rate: Rate) -> None:
        self.rate = rate
        # Each is a time and all units that were counted until then; those before it are apart.
        self.entries: deque[tuple[float, int]] = deque()
        self.before = 0
        self.counted = 0

    @property
    def slots(self) -> int:
        """One, and one for each call."""
        return 1 + len(self.entries)

    def wait(self, now: float, weight: int) -> float:
        """As `Window.wait`."""
        self._move(now)
        rate = self.rate
        surplus = self._total() + weight - rate.amount
        if surplus <= 0:
            return 0.0

        if weight > rate.amount:
            return inf

        gone = self.before + surplus
        leaving = next(time for time, until in self.entries if until >= gone)
        return leaving + rate.window - now

    def add(self, now: float, weight: int) -> None:
        """As `Window.add`."""
        if not self.entries:
            self.before = 0

        self.entries.append((now, self.before + self._total() + weight))

    def remaining(self, now: float) -> int:
        """As `Window.remaining`."""
        return max(0, self.rate.amount - self._total())

    def reset(self, now: float) -> float:
        """As `Window.reset`."""
        return max(0.0, self.entries[0][0] + self.rate.window - now) if self.entries else 0.0

    def over(self, now: float) -> bool:
        """As `Window.over`."""
        return not self.entries or now >= self.entries[-1][0] + self.rate.window

    def _total(self) -> int:
        return self.entries[-1][1] - self.before if self.entries else 0

    def _move(self, now: float) -> None:
        entries = self.entries
        if entries and entries[-1][0] > now:
            last = (now, entries[-1][1])
            entries.clear()
            entries.append(last)

        start = now - self.rate.window
        while entries and entries[0][0] <= start:
            self.before = entries.popleft()[1]


WINDOWS: Final[dict[Strategy, type[FixedWindow | SlidingWindow | MovingWindow]]] = {
    "fixed-window": FixedWindow,
    "sliding-window-counter": SlidingWindow,
    "moving-window": MovingWindow,
}
