"""The table of `SqlAudit` and its guards; apart from it, as SQLAlchemy is dear to import."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Index,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    inspect,
    text,
)

from .sql_rows import SEARCHED, microseconds, searchable

if TYPE_CHECKING:
    from sqlalchemy import Connection


def trail_table(name: str) -> Table:
    """Describe the table of that name."""
    table = Table(
        name,
        MetaData(),
        Column("chain", String(128), primary_key=True),
        Column("sequence", BigInteger, primary_key=True, autoincrement=False),
        Column("time_us", BigInteger, nullable=False),
        Column("kind", String(32), nullable=False),
        *(Column(each, Text) for each in SEARCHED),
        Column("hash", String(64), nullable=False),
        Column("line", LargeBinary, nullable=False),
    )
    Index(f"{name}_time", table.c.time_us)
    for each in ("tenant", "subject", "target"):
        Index(f"{name}_{each}", table.c[each], table.c.time_us)

    Index(f"{name}_correlation_id", table.c.correlation_id)
    return table


def conditions(
    table: Table, equal: Mapping[str, str | None], since: str | None, until: str | None
) -> list[ColumnElement[bool]]:
    """Give what rows must be.

    Args:
        table: The table.
        equal: Columns and what they hold; what is None does not matter.
        since: Not before that time, in RFC 3339.
        until: Before that time.

    Raises:
        ValueError: A time is none.
    """
    wanted = [
        table.c[name] == searchable(value) for name, value in equal.items() if value is not None
    ]
    if since is not None:
        wanted.append(table.c.time_us >= microseconds(since))

    if until is not None:
        wanted.append(table.c.time_us < microseconds(until))

    return wanted


def create(connection: Connection, table: Table, *, append_only: bool) -> None:
    """Make the table and its guards where there are none."""
    if not inspect(connection).has_table(table.name):
        table.metadata.create_all(connection)

    if append_only:
        guard = _guard_sqlite if connection.dialect.name == "sqlite" else _guard_postgresql
        guard(connection, table.name)


def _guard_sqlite(connection: Connection, name: str) -> None:
    for verb in ("UPDATE", "DELETE"):
        connection.execute(
            text(
                f'CREATE TRIGGER IF NOT EXISTS "{name}_no_{verb.lower()}" BEFORE {verb} '
                f"ON \"{name}\" BEGIN SELECT RAISE(ABORT, '{name} is append-only'); END"
            )
        )


def _guard_postgresql(connection: Connection, name: str) -> None:
    # Asked first: to make a trigger locks the table, which others write to.
    known = connection.execute(
        text("SELECT 1 FROM pg_trigger WHERE tgname = :trigger AND tgrelid = to_regclass(:name)"),
        {"trigger": f"{name}_append_only", "name": f'"{name}"'},
    )
    if known.first() is not None:
        return

    connection.execute(
        text(
            f'CREATE OR REPLACE FUNCTION "{name}_refuse"() RETURNS trigger LANGUAGE plpgsql AS '
            f"$$ BEGIN RAISE EXCEPTION '{name} is append-only'; END $$"
        )
    )
    connection.execute(
        text(
            f'CREATE TRIGGER "{name}_append_only" BEFORE UPDATE OR DELETE OR TRUNCATE '
            f'ON "{name}" FOR EACH STATEMENT EXECUTE FUNCTION "{name}_refuse"()'
        )
    )
