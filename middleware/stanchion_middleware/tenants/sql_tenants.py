"""Tenants in a database, over SQLAlchemy: SQLite and PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .record import MAX_ID_LENGTH, TenantRecord
from .store import TenantStore

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine


class SqlTenants(TenantStore):
    """Tenants in a table: `id`, `enabled`, and `record`, the other members as JSON.

    Secrets lie there as they are: encrypt the database, or keep references in them. It runs on
    asyncio alone, as SQLAlchemy does. Without `async with`, or a server that enters it, there is
    no table.
    """

    def __init__(self, engine: str | AsyncEngine, *, table: str = "stanchion_tenants") -> None:
        """Describe the store.

        Args:
            engine: A URL such as `sqlite+aiosqlite:///tenants.db` or
                `postgresql+asyncpg://user@host/name` (needs `stanchion[postgres]`), or an engine
                of your own, which you then dispose of yourself.
            table: The name of the table; it is made where there is none.
        """
        from sqlalchemy import JSON, Boolean, Column, MetaData, String, Table

        self._url = engine if isinstance(engine, str) else None
        self._engine = None if isinstance(engine, str) else engine
        self._table = Table(
            table,
            MetaData(),
            Column("id", String(MAX_ID_LENGTH), primary_key=True),
            Column("enabled", Boolean, nullable=False),
            Column("record", JSON, nullable=False),
        )

    async def __aenter__(self) -> object:
        """Open the database and make the table where there is none.

        Raises:
            sqlalchemy.exc.SQLAlchemyError: The database is away or refuses.
            OSError: It cannot be reached.
        """
        from sqlalchemy.ext.asyncio import create_async_engine

        if self._url is not None:
            # A connection that died while it waited is replaced, and costs no caller an answer.
            self._engine = create_async_engine(self._url, pool_pre_ping=True)

        async with self._opened.begin() as connection:
            await connection.run_sync(self._table.metadata.create_all)

        return self

    async def __aexit__(self, *raised: object) -> None:
        """Close what `__aenter__` opened."""
        if self._url is not None and self._engine is not None:
            engine, self._engine = self._engine, None
            await engine.dispose()

    async def find(self, id: str) -> TenantRecord | None:
        """Give the record of *id*, or None.

        Raises:
            sqlalchemy.exc.SQLAlchemyError: The database is away or refuses.
            pydantic.ValidationError: What lies there is no record.
        """
        async with self._opened.connect() as connection:
            row = (await connection.execute(self._selected(id))).one_or_none()

        if row is None:
            return None

        return TenantRecord.model_validate({**row.record, "id": row.id, "enabled": row.enabled})

    async def put(self, record: TenantRecord) -> None:
        """Write *record* in the place of what there is of its id.

        Raises:
            sqlalchemy.exc.SQLAlchemyError: The database is away or refuses.
        """
        members: dict[str, Any] = record.model_dump(mode="json", exclude={"id", "enabled"})
        row = {"id": record.id, "enabled": record.enabled, "record": members}
        update = self._table.update().where(self._table.c.id == record.id).values(row)
        async with self._opened.begin() as connection:
            if (await connection.execute(update)).rowcount == 0:
                await connection.execute(self._table.insert().values(row))

    async def remove(self, id: str) -> None:
        """Delete the record of *id*, if there is one.

        Raises:
            sqlalchemy.exc.SQLAlchemyError: The database is away or refuses.
        """
        async with self._opened.begin() as connection:
            await connection.execute(self._table.delete().where(self._table.c.id == id))

    def _selected(self, id: str) -> Any:
        return self._table.select().where(self._table.c.id == id)

    @property
    def _opened(self) -> AsyncEngine:
        if self._engine is None:
            raise RuntimeError("SqlTenants is not open; the server enters it when it starts")

        return self._engine
