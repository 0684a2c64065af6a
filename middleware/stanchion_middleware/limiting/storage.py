"""Where counts are kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Self

from .rate import Rate


class Standing(NamedTuple):
    """How one rate stands for a call that was refused.

    Attributes:
        remaining: Units that are left, 0 or more.
        reset: Seconds until some or all of what was counted no longer counts.
        wait: Seconds until this rate admits the call: 0.0 if it does now, infinite if never.
    """

    remaining: int
    reset: float
    wait: float


class LimitStorage(ABC):
    """Keeps counts for one `RateLimit` layer, in memory or for several processes.

    A subclass implements `take`, and may override `__aenter__` and `__aexit__`, which run around
    the server's life. `stanchion_testing.check_limit_storage` holds it to this contract.
    """

    @abstractmethod
    async def take(
        self, keys: Sequence[str], rates: Sequence[Rate], weight: int
    ) -> Sequence[Standing]:
        """Count a call by every one of *keys* if all their rates admit it, else by none.

        It is atomic: calls at the same time, of whatever process, are admitted as if they came
        one after the other.

        Args:
            keys: What to count by, each at most 1,000 characters and each once. One key comes
                with one length of window and one strategy; its amount may change.
            rates: The rate of each.
            weight: Units that the call takes, 1 or more.

        Returns:
            Nothing if the call is admitted, else how each rate stands, in their order.

        Raises:
            Unavailable: Nothing can be said now; `RateLimit(fail=...)` then decides.
        """

    async def __aenter__(self) -> Self:
        """Open what the storage needs; what is away is no error here."""
        return self

    async def __aexit__(self, *raised: object) -> None:  # noqa: B027 # may be overridden
        """Close it again."""
