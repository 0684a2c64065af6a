"""Correlation: whose call a record belongs to, also in log calls of your own.

The logging layer keeps the call that runs in a context variable. Tasks that a handler starts and
the worker threads of sync tools inherit it; a filter on a handler reads it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Final, cast

from stanchion import Call

from .lines import short_name

NONE: Final = "-"
"""What stands for a value that there is none of: outside of calls, without a tenant."""

CORRELATED: Final = (
    "correlation_id",
    "method",
    "target",
    "tenant",
    "subject",
    "trace_id",
    "span_id",
)
"""The attributes that `CorrelationFilter` adds to a record."""

current_call: ContextVar[Call | None] = ContextVar("stanchion_current_call", default=None)


class CorrelationFilter(logging.Filter):
    """Adds to every record the call in which it was written; lets all of them pass.

    To be added to a handler, so that the records of every logger pass it:

        handler.addFilter(CorrelationFilter())
        handler.setFormatter(logging.Formatter("%(correlation_id)s %(message)s"))

    The attributes are `correlation_id`, `method`, `target`, `tenant`, `subject`, `trace_id` and
    `span_id`, each a string, `-` where there is none. One that the record has already, from
    `extra=`, is kept. Needs a `Logging` layer in the chain: it is what knows the call.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the attributes."""
        attributes = record.__dict__
        found = _of_record(attributes) or correlation()
        for name in CORRELATED:
            if attributes.get(name) is None:
                attributes[name] = found.get(name) or NONE

        return True


def correlation() -> Mapping[str, str | None]:
    """Give `{attribute: value}` of the call that runs here; empty outside of calls."""
    call = current_call.get()
    return {} if call is None else correlation_of(call)


def correlation_of(call: Call) -> Mapping[str, str | None]:
    """Give `{attribute: value}` of *call*, also for `extra=` where it does not run any more."""
    principal, tenant = call.principal, call.tenant
    return {
        "correlation_id": short_name(call.correlation_id),
        "method": call.method,
        "target": short_name(call.target_name),
        "tenant": None if tenant is None else short_name(tenant.id),
        "subject": None if principal is None else short_name(principal.subject),
        "trace_id": call.trace_id,
        "span_id": call.span_id,
    }


def _of_record(attributes: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Give what the record of a call says itself: its end is written when none runs any more."""
    fields = attributes.get("stanchion")
    return cast("Mapping[str, Any]", fields) if isinstance(fields, Mapping) else None
