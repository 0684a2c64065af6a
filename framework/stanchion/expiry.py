"""Expiry: the end of what a principal has proved, on two clocks.

An expiry is a time of day, and a wait is measured on a clock that never steps. What has to end
then ends as soon as either clock says so: setting the time of day back prolongs nothing, and
setting it forward is noticed within `LOOK_EVERY`.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Final

import anyio

if TYPE_CHECKING:
    from .principal import Principal

LOOK_EVERY: Final = 60.0
"""Seconds after which the time of day is looked at again."""


class Expiry:
    """When what *principal* has proved ends; never, where it is None or its proof has no end."""

    __slots__ = ("_at", "_deadline")

    def __init__(self, principal: Principal | None) -> None:
        at = None if principal is None else principal.expires_at
        self._at = math.inf if at is None else at
        self._deadline = anyio.current_time() + self._at - time.time()

    @property
    def has_passed(self) -> bool:
        """Whether the proof is no longer good."""
        if self._at == math.inf:
            return False

        return anyio.current_time() >= self._deadline or time.time() >= self._at

    async def wait(self, event: anyio.Event) -> None:
        """Wait until *event* is set or the proof is no longer good."""
        if self._at == math.inf:
            await event.wait()
            return

        while not (event.is_set() or self.has_passed):
            left = min(self._deadline - anyio.current_time(), LOOK_EVERY)
            with anyio.move_on_after(left):
                await event.wait()
