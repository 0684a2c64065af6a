"""What an entry tells, as columns of text: for tables, spreadsheets and lines on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import orjson

from .entry import Entry, Kind

_PATHS: Final = {
    "decision": ("decision",),
    "policy": ("policy",),
    "reason": ("reason",),
    "error": ("error",),
    "tenant": ("actor", "tenant"),
    "subject": ("actor", "subject"),
    "client": ("actor", "client"),
    "issuer": ("actor", "issuer"),
    "roles": ("actor", "roles"),
    "acting": ("actor", "acting"),
    "method": ("call", "method"),
    "target": ("call", "target"),
    "target_kind": ("call", "target_kind"),
    "request_id": ("call", "request_id"),
    "arguments_digest": ("call", "arguments_digest"),
    "arguments": ("call", "arguments"),
    "transport": ("source", "transport"),
    "protocol_version": ("source", "protocol_version"),
    "address": ("source", "address"),
    "session": ("source", "session"),
    "client_name": ("source", "client_name"),
    "client_version": ("source", "client_version"),
    "started": ("started",),
    "duration_us": ("duration_us",),
    "result_size": ("result", "size"),
    "costs": ("costs",),
    "dry_run": ("dry_run",),
    "cached": ("cached",),
    "outcome_unknown": ("outcome_unknown",),
    "incomplete": ("incomplete",),
    "subject_key": ("subject_key",),
    "correlation_id": ("correlation_id",),
    "trace_id": ("trace_id",),
    "span_id": ("span_id",),
}

COLUMNS: Final = ("time", "chain", "sequence", "kind", "outcome", *_PATHS, "hash")
"""All there are, in their order."""

CALLS: Final = frozenset({Kind.CALL, Kind.INTERRUPTED})
"""Kinds of entries that tell of a call."""


def facts_of(entry: Entry) -> dict[str, str]:
    """Give all columns of *entry*; what it does not tell is empty, what has no text is JSON."""
    body = cast("Mapping[str, Any]", entry.content["body"])
    outcome = fact(body, ("outcome",))
    if entry.kind == Kind.INTERRUPTED:
        outcome = "interrupted"

    facts = {
        "time": _text(entry.content["time"]),
        "chain": entry.chain,
        "sequence": str(entry.sequence),
        "kind": entry.kind,
        "outcome": outcome,
    }
    facts |= {name: fact(body, path) for name, path in _PATHS.items()}
    return {**facts, "hash": entry.hash}


def fact(body: Mapping[str, Any], path: tuple[str, ...]) -> str:
    """Give what stands at *path* in *body*, as text; empty where nothing does."""
    value: Any = body
    for name in path:
        if not isinstance(value, Mapping):
            return ""

        value = cast("Mapping[str, Any]", value).get(name)

    return _text(value)


def _text(value: Any) -> str:
    if value is None:
        return ""

    return value if isinstance(value, str) else orjson.dumps(value).decode()
