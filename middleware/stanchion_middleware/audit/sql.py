"""A trail in a database: SQLite on one machine, PostgreSQL for many."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Self

from stanchion import ConfigurationError

from .entry import Entry, Tip
from .sink import AuditSink
from .sql_rows import row_of

if TYPE_CHECKING:
    from sqlalchemy import Table
    from sqlalchemy.ext.asyncio import AsyncEngine


class SqlAudit(AuditSink):
    """Keeps a trail in one table, which it only ever adds to; needs asyncio.

    A batch is one transaction. Beside each line, which is kept to the byte, stand columns to
    search by; they are cut at 512 characters and prove nothing, the line does. PostgreSQL needs
    `stanchion[postgres]`.

    The triggers of `append_only` stop statements, not the owner of the table, who can drop them.
    Let the server sign in to PostgreSQL as a role that does not own the table and was granted
    `SELECT` and `INSERT` on it alone.
    """

    name = "sql"

    def __init__(
        self,
        url: str,
        *,
        table: str = "stanchion_audit",
        chain: str | None = None,
        append_only: bool = True,
        create: bool = True,
        pool: int = 2,
    ) -> None:
        """Describe the sink; the table is made when it is opened.

        Args:
            url: As SQLAlchemy has it: `sqlite+aiosqlite:///audit.db`, or
                `postgresql+asyncpg://user@host/database`.
            table: The name of the table: letters, digits and `_`.
            chain: The chain to go on with, where a process ended before; only one process may
                write it at a time, and a second one fails with its first batch. None begins a
                new chain with each process.
            append_only: Make triggers by which the database refuses to change and delete.
            create: Make the table where there is none. Without it nothing is made or changed
                until `write`, so that a role which may only `SELECT` can read.
            pool: Connections to PostgreSQL, 1 or more; SQLite has one.

        Raises:
            ConfigurationError: *url* is for another database, or an option is out of range.
        """
        if not url.startswith(("sqlite+aiosqlite:", "postgresql+asyncpg:")):
            raise ConfigurationError(
                "SqlAudit: a url begins with sqlite+aiosqlite: or postgresql+asyncpg:"
            )

        if not (table.isascii() and table.isidentifier()) or len(table) > 40:
            raise ConfigurationError("SqlAudit: table is a name of at most 40 ASCII characters")

        if pool < 1:
            raise ConfigurationError("SqlAudit: pool is 1 or more")

        if chain is not None and not 0 < len(chain) <= 128:
            raise ConfigurationError("SqlAudit: chain has 1 to 128 characters")

        self._url = url
        self._name = table
        self._chain = chain
        self._append_only = append_only
        self._make = create
        self._lite = url.startswith("sqlite")
        self._pool = 1 if self._lite else pool
        self._engine: AsyncEngine | None = None
        self._table: Table

    async def __aenter__(self) -> Self:
        """Connect, and make the table where there is none and `create` says so.

        Raises:
            Exception: What the database raised.
        """
        from sqlalchemy.exc import DBAPIError
        from sqlalchemy.ext.asyncio import create_async_engine
        from sqlalchemy.pool import AsyncAdaptedQueuePool

        from .sql_tables import trail_table

        self._table = trail_table(self._name)
        self._engine = create_async_engine(
            self._url,
            poolclass=AsyncAdaptedQueuePool,
            pool_size=self._pool,
            max_overflow=0,
            pool_pre_ping=not self._lite,
            **({"connect_args": {"timeout": 30}} if self._lite else {}),
        )
        if not self._make:
            return self

        try:
            try:
                await self._create()
            except DBAPIError:  # another process makes it at this moment
                await self._create()
        except BaseException:
            await self._engine.dispose()
            raise

        return self

    async def __aexit__(self, *raised: object) -> None:
        """Close the connections."""
        if self._engine is not None:
            await self._engine.dispose()

    async def resume(self) -> Tip | None:
        """Give the end of the chain of that name; None where none was named."""
        if self._chain is None:
            return None

        from sqlalchemy import select

        engine, rows = self._opened(), self._table.c
        async with engine.connect() as connection:
            found = await connection.execute(
                select(rows.sequence, rows.hash)
                .where(rows.chain == self._chain)
                .order_by(rows.sequence.desc())
                .limit(1)
            )
            last = found.first()

        return Tip(self._chain) if last is None else Tip(self._chain, last.sequence, last.hash)

    async def write(self, entries: Sequence[Entry]) -> None:
        """Keep *entries*, all or none; what is there already is left as it is.

        Raises:
            ChainConflict: Another entry is there under the same chain and number.
            Exception: What the database raised.
        """
        from sqlalchemy.exc import IntegrityError

        from .sql_again import insert_missing

        rows = [row_of(entry) for entry in entries]
        if not rows:
            return

        try:
            async with self._opened().begin() as connection:
                await connection.execute(self._table.insert(), rows)
        except IntegrityError:
            # An answer was lost and the batch is told again, or somebody else writes the chain.
            async with self._opened().begin() as connection:
                await insert_missing(connection, self._table, rows)

    async def lines(
        self,
        *,
        chain: str | None = None,
        since: str | None = None,
        until: str | None = None,
        kind: str | None = None,
        outcome: str | None = None,
        method: str | None = None,
        target: str | None = None,
        tenant: str | None = None,
        subject: str | None = None,
        correlation_id: str | None = None,
        page: int = 1000,
    ) -> AsyncIterator[bytes]:
        """Read lines back, chain by chain and each in its order.

        It reads by pages and holds no transaction open, so it also meets entries that are added
        meanwhile. Each condition that is given must hold; texts are compared up to their first
        512 characters.

        Args:
            chain: The chain.
            since: Not before that time, in RFC 3339.
            until: Before that time.
            kind: What entries tell of.
            outcome: How calls ended.
            method: What was called.
            target: Which tool, prompt or resource.
            tenant: For which tenant.
            subject: By whom.
            correlation_id: Under which correlation id.
            page: Lines that are asked for at once, 1 or more.

        Raises:
            ValueError: A time is none, or has no offset from UTC.
            Exception: What the database raised.
        """
        from sqlalchemy import select, tuple_

        from .sql_tables import conditions

        equal = {"chain": chain, "kind": kind, "outcome": outcome, "method": method}
        equal |= {"target": target, "tenant": tenant, "subject": subject}
        equal |= {"correlation_id": correlation_id}
        engine, rows = self._opened(), self._table.c
        order = (rows.chain, rows.sequence)
        query = select(*order, rows.line).order_by(*order).limit(page)
        query = query.where(*conditions(self._table, equal, since, until))
        pages = query
        while True:
            async with engine.connect() as connection:
                found = (await connection.execute(pages)).all()

            for row in found:
                yield bytes(row.line)

            if len(found) < page:
                return

            pages = query.where(tuple_(*order) > (found[-1].chain, found[-1].sequence))

    def _opened(self) -> AsyncEngine:
        if self._engine is None:
            raise ConfigurationError("SqlAudit: it was not opened: use it inside `async with`")

        return self._engine

    async def _create(self) -> None:
        from sqlalchemy.exc import OperationalError

        from .sql_tables import create

        if self._lite:
            async with self._opened().connect() as connection:
                # Another process may be at it; the mode stays with the file.
                with contextlib.suppress(OperationalError):
                    await connection.exec_driver_sql("PRAGMA journal_mode=WAL")

        async with self._opened().begin() as connection:
            await connection.run_sync(create, self._table, append_only=self._append_only)
