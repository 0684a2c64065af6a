"""Arrears: bills that the store did not take, kept until it does."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, TypeAlias

import orjson

from .account import Account
from .store import Bill

MAX_BILLS: Final = 10_000
"""Bills that are kept."""

CROWDED: Final = MAX_BILLS // 2
"""Bills from which on no further call is to begin; the room above is for those that run."""

AT_ONCE: Final = 100
"""Bills that are settled behind one call, so that no call pays for all."""

MAX_TRIES: Final = 20
"""How often a bill is tried that the store refuses while it takes others."""

logger = logging.getLogger("stanchion.cost")

Settle: TypeAlias = Callable[[Bill, Account], Awaitable[bool]]
"""Settles a bill, and says whether the store took it."""


class Owed(NamedTuple):
    """A bill that was not taken.

    Attributes:
        bill: The bill.
        account: Whose it is.
        tries: How often it was tried since, while the store worked.
    """

    bill: Bill
    account: Account
    tries: int


class Arrears:
    """Keeps bills in memory, the oldest first; gone with the process.

    A bill that is given up is logged with all that it charges, so that it can be booked by hand.

    Attributes:
        owed: What is kept.
        lost: How many bills were given up.
    """

    __slots__ = ("_paying", "lost", "owed")

    def __init__(self) -> None:
        self.owed: deque[Owed] = deque()
        self.lost = 0
        self._paying = False

    def keep(self, bill: Bill, account: Account, tries: int = 0) -> None:
        """Keep *bill*; where there is no room, or after too many *tries*, give it up."""
        if tries < MAX_TRIES and len(self.owed) < MAX_BILLS:
            self.owed.append(Owed(bill, account, tries))
        else:
            self.lose(bill)

    def lose(self, bill: Bill) -> None:
        """Give *bill* up, and say in the log what it charges."""
        self.lost += 1
        charges = [{**entry._asdict(), "amount": str(entry.amount)} for entry in bill.entries]
        told = orjson.dumps({"id": bill.id, "at": bill.at, "billionths": charges}).decode()
        logger.error("a charge is lost, and is in no budget and no report: %s", told)

    async def pay(self, settle: Settle, most: int = AT_ONCE) -> None:
        """Have at most *most* bills settled, until one is not taken; one caller at a time."""
        if self._paying:
            return

        self._paying = True
        try:
            for _ in range(min(most, len(self.owed))):
                bill, account, tries = self.owed.popleft()
                try:
                    taken = await settle(bill, account)
                except BaseException:
                    self.owed.appendleft(Owed(bill, account, tries))
                    raise

                if not taken:  # behind the others: one that is never taken keeps up none
                    self.keep(bill, account, tries + 1)
                    break
        finally:
            self._paying = False
