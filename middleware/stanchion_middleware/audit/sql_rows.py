"""What a trail's table holds beside each line, to search by."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

from .entry import Entry

CUT: Final = 512
"""Characters that a column has at most; an index of PostgreSQL takes no value of 2,700 bytes."""

SEARCHED: Final = {
    "outcome": ("outcome",),
    "method": ("call", "method"),
    "target": ("call", "target"),
    "tenant": ("actor", "tenant"),
    "subject": ("actor", "subject"),
    "correlation_id": ("correlation_id",),
}
"""Columns, and where in the body of an entry their values stand."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def row_of(entry: Entry) -> dict[str, Any]:
    """Give the row that keeps *entry*; what it does not tell is None."""
    row: dict[str, Any] = {
        "chain": entry.chain,
        "sequence": entry.sequence,
        "time_us": microseconds(entry.content["time"]),
        "kind": entry.kind,
        "hash": entry.hash,
        "line": entry.line,
    }
    for name, path in SEARCHED.items():
        row[name] = _found(entry.content["body"], path)

    return row


def searchable(value: str) -> str:
    """Give *value* as a column has it."""
    return value[:CUT].replace("\0", "\ufffd")  # PostgreSQL has no NUL in a text


def microseconds(time: str) -> int:
    """Give a time as microseconds since 1970.

    Args:
        time: As RFC 3339 has it.

    Raises:
        ValueError: It is no time, or has no offset from UTC.
    """
    at = datetime.fromisoformat(time)
    if at.tzinfo is None:
        raise ValueError(f"{time!r} has no offset from UTC, such as Z")

    return (at - _EPOCH) // timedelta(microseconds=1)


def _found(body: Any, path: tuple[str, ...]) -> str | None:
    for name in path:
        if not isinstance(body, Mapping):
            return None

        body = cast("Mapping[str, Any]", body).get(name)

    return searchable(body) if isinstance(body, str) else None
