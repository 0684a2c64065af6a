"""Where what is spent is kept: the base class of stores, and what passes to and from them.

All amounts are billionths of their unit, whole numbers from 0 to `MAX_MINOR`. Time is told to a
store and never asked by it, in seconds since 1970.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Final, NamedTuple, Self

HOLD_LIMIT = 100
"""Reservations whose time is over that are given up at once, so that no call pays for all."""

KEPT_LINES = 24 * 3600
"""Seconds that what a window counted is kept after its end, for calls that began before it."""

OTHERS: Final = "…"
"""What stands in a report for those of whom there were too many to tell apart."""

MAX_UNITS: Final = 64
"""Units that those who are not told apart have on one day."""


class Charge(NamedTuple):
    """An amount on one line of one budget.

    Attributes:
        key: The line: the budget, its window, and whom it is counted for; short and printable.
        amount: How much; 0 to ask only whether the line is used up.
        limit: What may be spent on the line; of no meaning to `settle`.
        ends: When its window ends, in seconds since 1970.
    """

    key: str
    amount: int
    limit: int
    ends: int


class Hold(NamedTuple):
    """What a call reserves before it runs.

    Attributes:
        id: What tells it from every other.
        at: Now.
        expires_at: When it is given up, should nobody settle or release it.
        charges: What it holds, each line at most once, in the order of their keys.
    """

    id: str
    at: float
    expires_at: float
    charges: tuple[Charge, ...]


class CostEntry(NamedTuple):
    """What one call adds to the report.

    Attributes:
        day: The day in UTC, as in `2026-07-28`.
        tenant: For whom, at most 128 printable characters; likewise below. Empty for none.
        principal: Who.
        tool: What.
        unit: The unit.
        amount: How much.
    """

    day: str
    tenant: str
    principal: str
    tool: str
    unit: str
    amount: int


class Bill(NamedTuple):
    """What a call has cost.

    Attributes:
        id: That of its hold, which ends with it; of its own where it had none.
        at: Now.
        charges: What is spent on each line, each at most once, in the order of their keys.
        entries: What goes into the report.
    """

    id: str
    at: float
    charges: tuple[Charge, ...]
    entries: tuple[CostEntry, ...]


class CostRow(NamedTuple):
    """What was charged on a day to one tenant, principal and tool in one unit.

    Attributes:
        day: As of an entry; likewise the next four.
        tenant: For whom.
        principal: Who.
        tool: What.
        unit: The unit.
        amount: The sum.
        calls: How many calls it is the sum of.
    """

    day: str
    tenant: str
    principal: str
    tool: str
    unit: str
    amount: int
    calls: int


class CostStore(ABC):
    """Counts what is spent on lines, and what calls that run have reserved.

    Each verb is atomic: of callers at the same time none sees or leaves a part of it.

    Attributes:
        instant: Whether the verbs never wait, so that nothing can interrupt them.
    """

    instant: ClassVar[bool] = False

    @abstractmethod
    async def reserve(self, hold: Hold) -> Sequence[str]:
        """Hold all charges, or none of them.

        A line has room for an amount if what is spent and held on it and the amount are within
        the limit; and for 0 if what is spent and held is below it. What is held by holds whose
        time is over does not count.

        Returns:
            The keys of the lines without room; empty if all is held.
        """

    @abstractmethod
    async def settle(self, bill: Bill) -> Sequence[int]:
        """End the hold and add what was spent, whatever the limits; a sum stops at `MAX_MINOR`.

        A hold whose time was over changes nothing about it. Where the answer was lost the same
        bill is told again: a store that is not instant charges it once, if the second time is
        within 10 minutes.

        Returns:
            What is spent on each line, in the order of the charges; empty if the bill was
            settled already.
        """

    @abstractmethod
    async def release(self, id: str) -> None:
        """End the hold of that id without a charge; nothing where there is none."""

    @abstractmethod
    async def report(self, since: str, until: str) -> Sequence[CostRow]:
        """Give what was charged from day *since* to day *until*, both included, in no order."""

    async def __aenter__(self) -> Self:
        """Open what the store needs; called when the server starts."""
        return self

    async def __aexit__(self, *raised: object) -> None:
        """Close it again."""
        return
