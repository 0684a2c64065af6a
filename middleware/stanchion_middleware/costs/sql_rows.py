"""The report of `SqlCosts`: its rows, so many a day and for so many days."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from .amount import MAX_MINOR
from .store import MAX_UNITS, OTHERS, CostEntry, CostRow

if TYPE_CHECKING:
    from sqlalchemy import Table
    from sqlalchemy.ext.asyncio import AsyncConnection

KEYS: Final = ("day", "tenant", "principal", "tool", "unit")


class SqlRows:
    """Sums entries in a table.

    A process counts the rows of the day that it writes to when it begins with it, then those that
    it adds: several processes may come to that many rows each.
    """

    def __init__(self, table: Table, insert: Any, *, keep_days: int, max_rows: int) -> None:
        """Take the table, and the `insert` of its database that knows `ON CONFLICT`."""
        self._table = table
        self._insert = insert
        self._keep = timedelta(days=keep_days)
        self._most = max_rows
        self._counted = "", 0

    async def enter(self, connection: AsyncConnection, entries: Sequence[CostEntry]) -> None:
        """Add *entries* to the sums, in one order for all, so that none waits for another."""
        if not entries:
            return

        from sqlalchemy import case

        rows = self._table.c
        named = [await self._told_apart(connection, entry) for entry in entries]
        kept = sorted(entry for entry in named if entry is not None)
        if not kept:
            return

        adding = self._insert(self._table).values([{**each._asdict(), "calls": 1} for each in kept])
        more = adding.excluded.amount
        total = case((rows.amount > MAX_MINOR - more, MAX_MINOR), else_=rows.amount + more)
        upsert = adding.on_conflict_do_update(
            index_elements=KEYS, set_={"amount": total, "calls": rows.calls + 1}
        )
        found = await connection.execute(upsert.returning(rows.day, rows.calls))
        day, count = self._counted
        # A transaction that is rolled back has counted too much, until the next day.
        self._counted = day, count + sum(each.calls == 1 and each.day == day for each in found)

    async def between(self, connection: AsyncConnection, since: str, until: str) -> list[CostRow]:
        """Give the rows from day *since* to day *until*."""
        found = await connection.execute(
            self._table.select().where(self._table.c.day.between(since, until))
        )
        return [CostRow(*each) for each in found]

    async def purge(self, connection: AsyncConnection, now: float) -> None:
        """Delete what is too old, and count anew."""
        self._counted = "", 0
        first = (datetime.fromtimestamp(now, UTC).date() - self._keep).isoformat()
        await connection.execute(self._table.delete().where(self._table.c.day < first))

    async def _told_apart(self, connection: AsyncConnection, entry: CostEntry) -> CostEntry | None:
        """Give *entry*, or where the day is full and has no such row, that of all others.

        Of those there are `MAX_UNITS` more, then none.
        """
        from sqlalchemy import func, select

        rows = self._table.c
        if entry.day != self._counted[0]:
            counting = select(func.count()).where(rows.day == entry.day)
            self._counted = entry.day, (await connection.execute(counting)).scalar_one()

        if self._counted[1] < self._most:
            return entry

        others = entry._replace(tenant=OTHERS, principal=OTHERS, tool=OTHERS)
        if await self._has(connection, entry):
            return entry

        full = self._counted[1] >= self._most + MAX_UNITS
        return None if full and not await self._has(connection, others) else others

    async def _has(self, connection: AsyncConnection, entry: CostEntry) -> bool:
        from sqlalchemy import select

        rows = self._table.c
        same = [rows[name] == getattr(entry, name) for name in KEYS]
        return (await connection.execute(select(rows.day).where(*same))).first() is not None
