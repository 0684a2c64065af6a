"""The tables of `SqlCosts`; apart from it, as SQLAlchemy is dear to import."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, Float, Index, MetaData, String, Table
from sqlalchemy.dialects import postgresql, sqlite


class Tables:
    """The tables under one prefix.

    Attributes:
        metadata: All of them.
        lines: What is spent on each line of a budget.
        holds: What is reserved on which line, by whom, until when.
        bills: Which bills are settled, for those that are told again.
        rows: What the report shows.
    """

    def __init__(self, prefix: str) -> None:
        self.metadata = MetaData()
        self.lines = Table(
            f"{prefix}lines",
            self.metadata,
            Column("key", String(64), primary_key=True),
            Column("spent", BigInteger, nullable=False),
            Column("ends", BigInteger, nullable=False),
        )
        self.holds = Table(
            f"{prefix}holds",
            self.metadata,
            Column("id", String(64), primary_key=True),
            Column("key", String(64), primary_key=True),
            Column("amount", BigInteger, nullable=False),
            Column("expires_at", Float(53), nullable=False),
        )
        Index(f"{prefix}holds_key", self.holds.c.key)
        self.bills = Table(
            f"{prefix}bills",
            self.metadata,
            Column("id", String(64), primary_key=True),
            Column("at", Float(53), nullable=False),
        )
        self.rows = Table(
            f"{prefix}rows",
            self.metadata,
            Column("day", String(10), primary_key=True),
            *(Column(name, String(512), primary_key=True) for name in ("tenant", "principal")),
            Column("tool", String(512), primary_key=True),
            Column("unit", String(64), primary_key=True),
            Column("amount", BigInteger, nullable=False),
            Column("calls", BigInteger, nullable=False),
        )


def insert_for(dialect: str) -> Any:
    """Give the `insert` of *dialect* that knows `ON CONFLICT`.

    Raises:
        KeyError: There is none for it.
    """
    return {"sqlite": sqlite.insert, "postgresql": postgresql.insert}[dialect]
