"""What the audit layer keeps of a call while it runs, because it may change or be gone later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from stanchion import Call, Ending

from .capture import as_json
from .queue import Ticket
from .record import Evidence

UNKNOWN: Final = "unknown"
"""What stands for a correlation id where the server cannot make one."""


class Kept:
    """A call as it came to the layer, and what becomes of its record.

    Attributes:
        arguments: The arguments in JSON, as they came in.
        target: What is called. At the end of a call of a mounted server the call has the outer one.
        target_name: The name that was asked for, likewise.
        slot: Its slot in the journal, 0 for none.
        ticket: Who waits until the record is safe, or None.
        lost: Whether its record was not kept.
    """

    __slots__ = ("arguments", "lost", "slot", "target", "target_name", "ticket")

    def __init__(self, call: Call) -> None:
        self.arguments = encoded(call.arguments) if call.arguments else b""
        self.target = call.target
        self.target_name = call.target_name
        self.slot = 0
        self.ticket: Ticket | None = None
        self.lost = False

    def begun(self, call: Call, at: float) -> dict[str, Any]:
        """Give what is known of the call as it begins, in short: it should fit a slot."""
        told: dict[str, Any] = {
            "correlation_id": correlation_id(call),
            "method": call.method,
            "started_us": int(at * 1_000_000),
        }
        if self.target_name is not None:
            told["target"] = self.target_name

        if self.target is not None:
            told["target_kind"] = self.target.kind.noun

        if call.principal is not None:
            told["subject"] = call.principal.subject
            if call.principal.issuer is not None:
                told["issuer"] = call.principal.issuer

        if call.tenant is not None:
            told["tenant"] = call.tenant.id

        return told

    def evidence(self, call: Call, ending: Ending, at: float, *, with_result: bool) -> Evidence:
        """Give what the record is made of, now that the call has ended.

        Args:
            call: The call.
            ending: How it ended.
            at: When that was, in seconds since 1970.
            with_result: Whether the record will need the result; else it is let go of.
        """
        if ending.result is not None and not with_result:
            # It may be large, and records may wait for long.
            ending = Ending(ending.outcome, ending.error, None, ending.duration, ending.reply_size)

        return Evidence(
            call,
            ending,
            at,
            self.arguments,
            self.target,
            self.target_name,
            correlation_id(call),
        )


def encoded(arguments: Mapping[str, Any]) -> bytes:
    """Give *arguments* in JSON; of what a layer outside has put there, what JSON has a form for."""
    try:
        return orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        return orjson.dumps(as_json(arguments), option=orjson.OPT_SORT_KEYS)


def correlation_id(call: Call) -> str:
    """Give the id of *call*; a server whose own way to make ids fails has a record all the same."""
    try:
        return call.correlation_id
    except Exception:  # noqa: BLE001 # `new_correlation_id` is the user's; the answer reports it
        return UNKNOWN
