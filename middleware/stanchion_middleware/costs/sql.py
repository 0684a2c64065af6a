"""Costs in a database: SQLite for the processes of one machine, PostgreSQL for many."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, Any, Final, Self

from stanchion import ConfigurationError, Unavailable

from .amount import MAX_MINOR
from .sql_rows import SqlRows
from .store import KEPT_LINES, Bill, Charge, CostRow, CostStore, Hold

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from .sql_tables import Tables

PURGE_PAUSE: Final = 3600
"""Seconds between two times that what is over is deleted."""


class SqlCosts(CostStore):
    """Costs in a database, exact over all processes that share it; needs asyncio.

    A verb is one transaction. Lines that end are deleted a day later, those of `total` never; a
    bill is known by its id for a day. PostgreSQL needs `stanchion[postgres]`.
    """

    def __init__(
        self,
        url: str,
        *,
        table_prefix: str = "stanchion_cost_",
        pool: int = 5,
        keep_days: int = 400,
        max_rows: int = 100_000,
    ) -> None:
        """Describe the store; the tables are made when it is opened.

        Args:
            url: As SQLAlchemy has it: `sqlite+aiosqlite:///costs.db`, or
                `postgresql+asyncpg://user@host/database`.
            table_prefix: What the names of the tables begin with: letters, digits and `_`.
            pool: Connections to PostgreSQL, 1 or more; SQLite writes with one at a time.
            keep_days: Days that the report is kept, 1 or more; what is older is deleted with
                the first charge after a start, and hourly.
            max_rows: Rows of the report that a process adds to one day, 1 or more; what is over
                is summed under `…`, each unit by itself.

        Raises:
            ConfigurationError: *url* is for another database, or an option is out of range.
        """
        if not url.startswith(("sqlite+aiosqlite:", "postgresql+asyncpg:")):
            raise ConfigurationError(
                "SqlCosts: a url begins with sqlite+aiosqlite: or postgresql+asyncpg:"
            )

        if not table_prefix.isidentifier() or len(table_prefix) > 40:
            raise ConfigurationError("SqlCosts: table_prefix is a name of at most 40 characters")

        if min(pool, keep_days, max_rows) < 1:
            raise ConfigurationError("SqlCosts: pool, keep_days and max_rows are 1 or more")

        self._url = url
        self._prefix = table_prefix
        self._pool = 1 if url.startswith("sqlite") else pool
        self._keep_days = keep_days
        self._max_rows = max_rows
        self._engine: AsyncEngine | None = None
        self._tables: Tables | None = None
        self._rows: SqlRows
        self._insert: Any = None
        self._purged = -inf

    async def __aenter__(self) -> Self:
        """Connect, and make the tables where there are none."""
        from sqlalchemy.exc import DBAPIError
        from sqlalchemy.ext.asyncio import create_async_engine
        from sqlalchemy.pool import AsyncAdaptedQueuePool

        from .sql_tables import Tables, insert_for

        lite = self._url.startswith("sqlite")
        self._tables = Tables(self._prefix)
        self._engine = create_async_engine(
            self._url,
            poolclass=AsyncAdaptedQueuePool,
            pool_size=self._pool,
            max_overflow=0,
            pool_pre_ping=not lite,
            # Other processes write too: wait for them, and let none read what is not committed.
            **(
                {"connect_args": {"timeout": 30}} if lite else {"isolation_level": "READ COMMITTED"}
            ),
        )
        self._insert = insert_for(self._engine.dialect.name)
        self._rows = SqlRows(
            self._tables.rows, self._insert, keep_days=self._keep_days, max_rows=self._max_rows
        )
        self._purged = -inf
        try:
            await self._create(lite)
        except DBAPIError:  # another process makes them at this moment
            await self._create(lite)

        return self

    async def __aexit__(self, *raised: object) -> None:
        """Close the connections."""
        if self._engine is not None:
            await self._engine.dispose()

    async def reserve(self, hold: Hold) -> Sequence[str]:
        """Hold all charges, or none of them.

        Raises:
            Exception: What the database raised.
        """
        engine, tables = self._opened()
        async with engine.connect() as connection:  # rolls back what is not committed
            spent = await self._locked(connection, hold.charges, spend=False)
            held = await self._held(connection, hold)
            refused = [
                key
                for key, amount, limit, _ in hold.charges
                if spent[key] + held.get(key, 0) + max(amount, 1) > limit
            ]
            if not refused:
                await connection.execute(
                    tables.holds.insert(),
                    [
                        {"id": hold.id, "key": each.key, "amount": each.amount}
                        | {"expires_at": hold.expires_at}
                        for each in hold.charges
                    ],
                )
                await connection.commit()

        return refused

    async def settle(self, bill: Bill) -> Sequence[int]:
        """End the hold and add what was spent.

        Raises:
            Exception: What the database raised; nothing is charged then.
        """
        engine, tables = self._opened()
        async with engine.begin() as connection:
            known = self._insert(tables.bills).values(id=bill.id, at=bill.at)
            fresh = await connection.execute(
                known.on_conflict_do_nothing().returning(tables.bills.c.id)
            )
            if fresh.first() is None:  # an answer was lost, and it is told again
                return ()

            spent = await self._locked(connection, bill.charges, spend=True)
            await connection.execute(tables.holds.delete().where(tables.holds.c.id == bill.id))
            await self._rows.enter(connection, bill.entries)
            if not 0 <= bill.at - self._purged < PURGE_PAUSE:
                self._purged = bill.at
                await self._purge(connection, bill.at)

        return [spent[each.key] for each in bill.charges]

    async def release(self, id: str) -> None:
        """End the hold of that id without a charge."""
        engine, tables = self._opened()
        async with engine.begin() as connection:
            await connection.execute(tables.holds.delete().where(tables.holds.c.id == id))

    async def report(self, since: str, until: str) -> Sequence[CostRow]:
        """Give what was charged in these days."""
        engine, _ = self._opened()
        async with engine.connect() as connection:
            return await self._rows.between(connection, since, until)

    def _opened(self) -> tuple[AsyncEngine, Tables]:
        if self._engine is None or self._tables is None:
            raise Unavailable("costs are kept by a running server only", policy="cost")

        return self._engine, self._tables

    async def _create(self, lite: bool) -> None:
        from sqlalchemy.exc import OperationalError

        engine, tables = self._opened()
        if lite:
            async with engine.connect() as connection:
                # Another process may be at it; the mode stays with the file.
                with contextlib.suppress(OperationalError):
                    await connection.exec_driver_sql("PRAGMA journal_mode=WAL")

        async with engine.begin() as connection:
            await connection.run_sync(tables.metadata.create_all)

    async def _locked(
        self, connection: AsyncConnection, charges: Sequence[Charge], *, spend: bool
    ) -> dict[str, int]:
        """Make the lines where there are none, and keep others from them until the commit.

        In the order of their keys, as everybody does, so that no two wait for one another.

        Returns:
            `{key: spent}`, with the charges in it if *spend*.
        """
        if not charges:
            return {}

        from sqlalchemy import case

        lines = self._opened()[1].lines
        values = [
            {"key": each.key, "spent": each.amount if spend else 0, "ends": each.ends}
            for each in charges
        ]
        adding = self._insert(lines).values(values)
        more = adding.excluded.spent
        # SQLite would go on in floats where a sum is too large.
        total = case((lines.c.spent > MAX_MINOR - more, MAX_MINOR), else_=lines.c.spent + more)
        upsert = adding.on_conflict_do_update(index_elements=["key"], set_={"spent": total})
        found = await connection.execute(upsert.returning(lines.c.key, lines.c.spent))
        return {each.key: each.spent for each in found}

    async def _held(self, connection: AsyncConnection, hold: Hold) -> dict[str, int]:
        """Give what is held on the lines, which are locked, by holds whose time is not over."""
        from sqlalchemy import func, select

        holds = self._opened()[1].holds
        keys = [each.key for each in hold.charges]
        found = await connection.execute(
            select(holds.c.key, func.sum(holds.c.amount))
            .where(holds.c.key.in_(keys), holds.c.expires_at > hold.at)
            .group_by(holds.c.key)
        )
        return {key: int(amount) for key, amount in found}

    async def _purge(self, connection: AsyncConnection, now: float) -> None:
        _, tables = self._opened()
        await connection.execute(tables.holds.delete().where(tables.holds.c.expires_at < now))
        over = tables.lines.c.ends < int(now) - KEPT_LINES
        await connection.execute(tables.lines.delete().where(over))
        known = tables.bills.c.at < now - KEPT_LINES
        await connection.execute(tables.bills.delete().where(known))
        await self._rows.purge(connection, now)
