"""What every store of costs owes, as a check that runs over any of them.

async def test_my_store():
    async with MyCosts() as store:
        await check_cost_store(store)
"""

from __future__ import annotations

import secrets
import time
from typing import Final

import anyio

from stanchion_middleware import Bill, Charge, CostEntry, CostStore, Hold

from .trial import Unpaid, owes

AT_ONCE: Final = 200
LARGE: Final = 2**63 - 1
HELD: Final = 600.0


class CostStoreBroken(AssertionError):
    """Raised when a store of costs does not do what it owes."""


async def check_cost_store(store: CostStore) -> None:
    """Check that a store does what its base class promises, on lines and for tenants of its own.

    It moves time on by an hour in what it tells the store, so that reservations of others in the
    same store are given up. It checks no bound, because each store has its own.

    Raises:
        CostStoreBroken: The store fails.
    """
    try:
        for check in (_limits, _all_or_nothing, _settles, _releases, _expires, _is_exact):
            await check(_Book(store))

        await _reports(_Book(store))
        await _admits_at_once(_Book(store))
    except Unpaid as debt:
        raise CostStoreBroken(f"not so: {debt}") from None


class _Book:
    """A store, and lines and ids that nobody else has."""

    def __init__(self, store: CostStore) -> None:
        self.store = store
        self.now = float(int(time.time()))
        self.name = secrets.token_hex(8)

    def charge(self, line: str, amount: int, limit: int = 100) -> Charge:
        return Charge(f"{self.name}{line}", amount, limit, int(self.now) + 7200)

    async def reserve(self, id: str, *charges: Charge) -> list[str]:
        hold = Hold(f"{self.name}{id}", self.now, self.now + HELD, tuple(sorted(charges)))
        refused = await self.store.reserve(hold)
        return sorted(key.removeprefix(self.name) for key in refused)

    async def settle(
        self, id: str, *charges: Charge, entries: tuple[CostEntry, ...] = ()
    ) -> list[int]:
        bill = Bill(f"{self.name}{id}", self.now, tuple(sorted(charges)), entries)
        return list(await self.store.settle(bill))

    async def release(self, id: str) -> None:
        await self.store.release(f"{self.name}{id}")

    async def room(self, line: str, limit: int = 100) -> int:
        """Find by halves what the line has room for."""
        least, most = 0, limit
        while least < most:
            middle = (least + most + 1) // 2
            if await self.reserve("probe", self.charge(line, middle, limit)):
                most = middle - 1
            else:
                await self.release("probe")
                least = middle

        return least


async def _limits(book: _Book) -> None:
    owes(await book.reserve("a", book.charge("x", 101)) == ["x"], "more than the limit is refused")
    owes(await book.reserve("a", book.charge("x", 100)) == [], "the limit itself is held")
    owes(await book.reserve("b", book.charge("x", 1)) == ["x"], "what is held counts")
    owes(await book.reserve("b", book.charge("x", 0)) == ["x"], "nor is 0 held where all is used")
    owes(await book.reserve("b", book.charge("y", 0)) == [], "0 is held where there is room")
    owes(await book.reserve("c", book.charge("y", 100)) == [], "a hold of 0 holds nothing")
    owes(await book.reserve("d", book.charge("x", 50, 150)) == [], "a limit may grow")
    owes(await book.reserve("e", book.charge("x", 1, 20)) == ["x"], "and shrink below what is used")


async def _all_or_nothing(book: _Book) -> None:
    await book.reserve("full", book.charge("b", 100), book.charge("d", 95))
    charges = [book.charge(line, 10) for line in "abcd"]
    owes(await book.reserve("one", *charges) == ["b", "d"], "all lines without room are told")
    owes(await book.room("a") == 100 and await book.room("c") == 100, "the others hold nothing")


async def _settles(book: _Book) -> None:
    await book.reserve("a", book.charge("x", 60), book.charge("y", 60))
    totals = await book.settle("a", book.charge("x", 10), book.charge("z", 5))
    owes(totals == [10, 5], "what is spent on each line is told, in the order of the charges")
    owes(await book.room("x") == 90, "what was held is replaced by what was spent")
    owes(await book.room("y") == 100, "what was held and not spent is free again")
    owes(await book.settle("b", book.charge("x", 200)) == [210], "what is spent may be over")
    owes(await book.reserve("c", book.charge("x", 1)) == ["x"], "and then nothing is left")
    await book.settle("empty")
    if not book.store.instant:  # the answer of one that waits can be lost
        owes(await book.settle("b", book.charge("x", 200)) == [], "a bill that is told again")
        owes(await book.settle("d", book.charge("x", 1)) == [211], "is charged once")


async def _releases(book: _Book) -> None:
    await book.reserve("a", book.charge("x", 60))
    await book.release("a")
    await book.release("a")
    await book.release("never")
    owes(await book.room("x") == 100, "what is released once or twice is free once")


async def _expires(book: _Book) -> None:
    await book.reserve("a", book.charge("x", 60))
    book.now += HELD - 1
    owes(await book.room("x") == 40, "a hold counts until its time is over")
    book.now += 1
    owes(await book.room("x") == 100, "a hold whose time is over does not count")
    owes(await book.settle("a", book.charge("x", 30)) == [30], "and is settled all the same")
    owes(await book.room("x") == 70, "once")


async def _is_exact(book: _Book) -> None:
    near = 2**53 + 1  # no float is that number
    await book.settle("a", book.charge("x", near))
    owes(await book.settle("b", book.charge("x", 2)) == [near + 2], "no amount is a float")
    owes(await book.room("x", near + 3) == 1, "nor is a comparison")
    owes(await book.settle("c", book.charge("x", LARGE)) == [LARGE], "a sum stops at the most")
    owes(await book.reserve("d", book.charge("x", 1, LARGE)) == ["x"], "where nothing is left")
    owes(await book.reserve("e", book.charge("y", LARGE, LARGE)) == [], "all of it can be held")
    owes(await book.reserve("f", book.charge("y", LARGE, LARGE)) == ["y"], "once")


async def _reports(book: _Book) -> None:
    def entry(day: str, unit: str, amount: int, tool: str = "t") -> CostEntry:
        return CostEntry(day, book.name, "p|q", tool, unit, amount)

    near = 2**53 + 1
    await book.settle("a", entries=(entry("2001-02-03", "EUR", 1), entry("2001-02-03", "USD", 5)))
    await book.settle("b", entries=(entry("2001-02-03", "USD", near),))
    await book.settle("c", entries=(entry("2001-02-04", "USD", 7, "ü"),))
    found = await book.store.report("2001-02-03", "2001-02-04")
    mine = sorted(tuple(row) for row in found if row.tenant == book.name)
    head = ("2001-02-03", book.name, "p|q", "t")
    expected = [
        (*head, "EUR", 1, 1),
        (*head, "USD", near + 5, 2),
        ("2001-02-04", book.name, "p|q", "ü", "USD", 7, 1),
    ]
    owes(mine == expected, "a report has the sums by day, tenant, principal, tool and unit")
    found = await book.store.report("2001-02-04", "2001-02-04")
    owes([row.amount for row in found if row.tenant == book.name] == [7], "days are told apart")


async def _admits_at_once(book: _Book) -> None:
    admitted: list[int] = []

    async def call(number: int) -> None:
        charges = [book.charge(line, 1, limit) for line, limit in (("x", 100), ("y", 150))]
        if not await book.reserve(str(number), *charges):
            admitted.append(number)
            await book.settle(str(number), *charges)

    async with anyio.create_task_group() as group:
        for number in range(AT_ONCE):
            group.start_soon(call, number)

    owes(len(admitted) == 100, f"of {AT_ONCE} at once exactly 100 are admitted")
    owes(await book.room("y", 150) == 50, "and those alone are charged, on every line")
