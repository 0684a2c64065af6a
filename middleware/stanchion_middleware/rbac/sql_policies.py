"""Policies in a table, in the form that casbin's own SQL adapters use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from stanchion import ConfigurationError

from .adapter import PolicyAdapter
from .statements import Statement, statement_of

if TYPE_CHECKING:
    from sqlalchemy import Table
    from sqlalchemy.ext.asyncio import AsyncEngine

COLUMNS: Final = ("v0", "v1", "v2", "v3", "v4", "v5")


class SqlPolicies(PolicyAdapter):
    """Statements in a table with the columns `id`, `ptype` and `v0` to `v5`.

    SQLAlchemy's engines run on asyncio only; on trio, loading fails and says so.
    """

    def __init__(self, database: str | AsyncEngine, *, table: str = "casbin_rule") -> None:
        """Describe the table; it is made by `save` where it is missing.

        Args:
            database: An SQLAlchemy URL with an async driver, such as
                `sqlite+aiosqlite:///policies.db` or `postgresql+asyncpg://…`, or an engine,
                which is then its owner's to close.
            table: The table's name.

        Raises:
            ConfigurationError: *database* is no URL with an async driver.
        """
        self._database = database
        self._table_name = table
        self._made: tuple[AsyncEngine, Table] | None = None

    async def load(self) -> Sequence[Statement]:
        """Read the table, in the order of `id`.

        Raises:
            ConfigurationError: A row is no statement; names its id.
            SQLAlchemyError: The database cannot be reached, or has no such table.
        """
        engine, table = self._open()
        async with engine.connect() as connection:
            rows = (await connection.execute(table.select().order_by(table.c.id))).all()

        return [_statement(row) for row in rows]

    async def save(self, statements: Iterable[Statement]) -> None:
        """Replace all rows in one transaction.

        Raises:
            SQLAlchemyError: The database cannot be reached.
        """
        rows: list[dict[str, str]] = [
            dict(zip(("ptype", *COLUMNS), [*fields, *[""] * 6][:7], strict=True))
            for fields in (statement.fields() for statement in statements)
        ]
        engine, table = self._open()
        async with engine.begin() as connection:
            await connection.run_sync(table.metadata.create_all)
            await connection.execute(table.delete())
            if rows:
                await connection.execute(table.insert(), rows)

    async def close(self) -> None:
        """Close the engine, if it was made from a URL; it is opened again when needed."""
        made, self._made = self._made, None
        if made is not None and made[0] is not self._database:
            await made[0].dispose()

    def _open(self) -> tuple[AsyncEngine, Table]:
        if self._made is None:
            # SQLAlchemy is dear to import.
            from sqlalchemy import Column, Integer, MetaData, String, Table
            from sqlalchemy.exc import ArgumentError, InvalidRequestError
            from sqlalchemy.ext.asyncio import create_async_engine

            engine = self._database
            if isinstance(engine, str):
                try:
                    engine = create_async_engine(engine)
                except (ArgumentError, InvalidRequestError, ImportError) as error:
                    # Without the URL, which may hold a password.
                    raise ConfigurationError(f"SqlPolicies: {type(error).__name__}") from None

            words = [Column(name, String, nullable=True) for name in COLUMNS]
            table = Table(
                self._table_name,
                MetaData(),
                Column("id", Integer, primary_key=True),
                Column("ptype", String, nullable=False),
                *words,
            )
            self._made = engine, table

        return self._made


def _statement(row: Any) -> Statement:
    _, *fields = row
    while fields and not fields[-1]:
        fields.pop()

    try:
        return statement_of([field or "" for field in fields])
    except (ConfigurationError, ValueError) as error:
        raise ConfigurationError(f"SqlPolicies: row {row.id}: {error}") from error
