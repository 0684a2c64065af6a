"""Time that tests hold in their hand: nothing sleeps, and deadlines come when they are due."""

from __future__ import annotations

import asyncio
import selectors
from typing import Any


class FakeClock:
    """A clock for whatever takes `clock=`; stands still until it is advanced.

    Attributes:
        now: The time in seconds.
    """

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """Give the time in seconds."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Move time on by *seconds*, 0 or more.

        Raises:
            ValueError: *seconds* is negative.
        """
        if seconds < 0:
            raise ValueError("time does not go backwards")

        self.now += seconds


class _JumpingSelector(selectors.DefaultSelector):
    """A selector that never waits for a timer: when nothing is ready, time jumps to it."""

    jumped = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)

        ready = super().select(0)
        if not ready:
            self.jumped += timeout

        return ready


class JumpingEventLoop(asyncio.SelectorEventLoop):
    """An asyncio event loop whose time jumps to the next timer when nothing else can run.

    `await sleep(3600)` returns at once and a deadline of an hour fires at once, in their right
    order: what trio's `MockClock(autojump_threshold=0)` does. Time also jumps while a worker
    thread is busy, so a thread that must outlive a deadline needs no real time either.
    """

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Give the loop's time in seconds: the real one plus all jumps."""
        return super().time() + self._jumping.jumped


def jumping_backend(name: str) -> tuple[str, dict[str, Any]]:
    """Give the anyio backend *name*, `asyncio` or `trio`, with time that jumps.

    For an `anyio_backend` fixture; make a new one for each test.
    """
    if name == "asyncio":
        return "asyncio", {"loop_factory": JumpingEventLoop}

    from trio.testing import MockClock

    return "trio", {"clock": MockClock(autojump_threshold=0)}
