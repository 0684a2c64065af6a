"""A batch that is told again: an answer was lost, or somebody else writes the chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlalchemy import Table
    from sqlalchemy.ext.asyncio import AsyncConnection


class ChainConflict(Exception):
    """Another entry is kept under the same chain and number: two processes write one chain.

    Attributes:
        chain: The chain.
        sequence: The number.
    """

    def __init__(self, chain: str, sequence: int) -> None:
        super().__init__(f"another entry {sequence} is kept in chain {chain!r}")
        self.chain = chain
        self.sequence = sequence


async def insert_missing(
    connection: AsyncConnection, table: Table, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Insert those of *rows* that are not there.

    Raises:
        ChainConflict: Under the chain and number of one there is another line.
        Exception: What the database raised.
    """
    kept = await _kept(connection, table, rows)
    for row in rows:
        there = kept.get((row["chain"], row["sequence"]))
        if there is not None and there != row["line"]:
            raise ChainConflict(row["chain"], row["sequence"])

    missing = [dict(row) for row in rows if (row["chain"], row["sequence"]) not in kept]
    if missing:
        await connection.execute(table.insert(), missing)


async def _kept(
    connection: AsyncConnection, table: Table, rows: Sequence[Mapping[str, Any]]
) -> dict[tuple[str, int], bytes]:
    """Give the lines between the first and the last of *rows* that are there."""
    from sqlalchemy import select

    columns = table.c
    kept: dict[tuple[str, int], bytes] = {}
    for chain in {row["chain"] for row in rows}:
        numbers = [row["sequence"] for row in rows if row["chain"] == chain]
        found = await connection.execute(
            select(columns.sequence, columns.line).where(
                columns.chain == chain, columns.sequence.between(min(numbers), max(numbers))
            )
        )
        kept |= {(chain, row.sequence): bytes(row.line) for row in found}

    return kept
