"""Which trace a request belongs to, as the `traceparent` and its like in its `_meta` say.

Written by a peer, so everything is bounded, and what is malformed is left out without a word: the
parsers of OpenTelemetry log each, in the peer's own words.

Source: MCP 2026-07-28, basic, "_meta"; W3C Trace Context, sections 3.2 and 3.3; W3C Baggage,
section 3.3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

from opentelemetry import baggage
from opentelemetry.context import Context
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    TraceFlags,
    TraceState,
    set_span_in_context,
)

TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"
BAGGAGE: Final = "baggage"

MAX_TRACEPARENT: Final = 512
MAX_TRACESTATE: Final = 8192
MAX_STATES: Final = 32
MAX_BAGGAGE: Final = 8192
MAX_MEMBERS: Final = 64
"""The most that W3C Baggage asks to be carried."""

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_STATE = re.compile(
    r"([a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13})"
    r"=([\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e])"
)
_KEY = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*")


def context_in(meta: Mapping[str, Any], around: Context) -> Context | None:
    """Give *around* with what *meta* says of the trace and its baggage, or None for nothing.

    The span of the context that is given is the peer's, where *meta* names one.
    """
    remote = remote_span(meta) if TRACEPARENT in meta else None
    context = None if remote is None else set_span_in_context(NonRecordingSpan(remote), around)
    carried = meta.get(BAGGAGE)
    if isinstance(carried, str):
        for key, value in baggage_members(carried):
            context = baggage.set_baggage(key, value, around if context is None else context)

    return context


def remote_span(meta: Mapping[str, Any]) -> SpanContext | None:
    """Give the span that *meta* names as the parent, or None where it names none."""
    text = meta.get(TRACEPARENT)
    if not isinstance(text, str) or len(text) > MAX_TRACEPARENT:
        return None

    found = _TRACEPARENT.fullmatch(text)
    if found is None:
        return None

    version, trace_id, span_id, flags, rest = found.groups()
    # Version 00 has these four fields alone; of a later one they are what is known.
    if version == "ff" or (version == "00" and rest is not None):
        return None

    remote = SpanContext(
        int(trace_id, 16),
        int(span_id, 16),
        is_remote=True,
        trace_flags=TraceFlags(int(flags, 16)),
        trace_state=_state(meta.get(TRACESTATE)),
    )
    return remote if remote.is_valid else None


def _state(text: object) -> TraceState | None:
    """Read a `tracestate`, or give None: one that has a fault is left out whole."""
    if not isinstance(text, str) or len(text) > MAX_TRACESTATE:
        return None

    entries: dict[str, str] = {}
    for member in text.split(","):
        stripped = member.strip(" \t")
        if not stripped:  # allowed, and means nothing
            continue

        found = _STATE.fullmatch(stripped)
        if found is None or found[1] in entries:
            return None

        entries[found[1]] = found[2]

    return TraceState(list(entries.items())) if len(entries) <= MAX_STATES else None


def baggage_members(text: str) -> list[tuple[str, str]]:
    """Read a `baggage`: its keys with their values decoded, without properties.

    A member that has a fault is left out, and so is the whole where it is too long.
    """
    if len(text) > MAX_BAGGAGE:
        return []

    members: list[tuple[str, str]] = []
    for member in text.split(",", MAX_MEMBERS)[:MAX_MEMBERS]:
        key, equals, value = member.partition(";")[0].partition("=")
        key, value = key.strip(" \t"), value.strip(" \t")
        if equals and _KEY.fullmatch(key) and _VALUE.fullmatch(value):
            members.append((key, unquote(value)))

    return members
