"""What OCSF calls outcomes, methods, and what a trail tells of itself.

Source: OCSF schema 1.9.0-dev, `dictionary.json` and class `api_activity`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple


class Standing(NamedTuple):
    """What OCSF calls an outcome.

    Attributes:
        status_id: 0 unknown, 1 success, 2 failure, 99 other.
        severity_id: 1 informational, 2 low, 3 medium, 4 high.
        disposition_id: What the controls made of it: 1 allowed, 2 blocked, 25 rejected,
            26 unauthorized, 27 error, 16 no action.
    """

    status_id: int
    severity_id: int
    disposition_id: int


OUTCOMES: Final[Mapping[str, Standing]] = {
    "ok": Standing(1, 1, 1),
    "tool_error": Standing(2, 2, 1),
    "unauthenticated": Standing(2, 3, 26),
    "denied": Standing(2, 3, 2),
    "limited": Standing(2, 2, 25),
    "over_budget": Standing(2, 2, 25),
    "invalid": Standing(2, 2, 25),
    "timeout": Standing(2, 3, 27),
    "unavailable": Standing(2, 3, 27),
    "cancelled": Standing(99, 1, 1),
    "simulated": Standing(1, 1, 16),
    "input_required": Standing(1, 1, 1),
    "task_created": Standing(1, 1, 1),
    "crashed": Standing(2, 4, 27),
    "interrupted": Standing(0, 4, 27),
}
"""Outcomes of calls, and that of those whose process died."""

UNKNOWN: Final = Standing(0, 1, 0)

KINDS: Final[Mapping[str, tuple[int, str]]] = {
    "opened": (1, "The audit trail was opened"),
    "closed": (1, "The audit trail was closed"),
    "head": (1, "The audit trail was signed"),
    "lost": (4, "Audit records were lost"),
}
"""Severity and message of what a trail tells of itself."""

CAPTIONS: Final[Mapping[str, Mapping[int, str]]] = {
    "action": {0: "Unknown", 1: "Allowed", 2: "Denied"},
    "activity": {0: "Unknown", 1: "Create", 2: "Read", 3: "Update", 4: "Delete", 99: "Other"},
    "disposition": {
        0: "Unknown",
        1: "Allowed",
        2: "Blocked",
        16: "No Action",
        25: "Rejected",
        26: "Unauthorized",
        27: "Error",
    },
    "severity": {1: "Informational", 2: "Low", 3: "Medium", 4: "High"},
    "status": {0: "Unknown", 1: "Success", 2: "Failure"},
}

READS: Final = {"completion/complete", "server/discover", "ping", "tasks/result"}

CHANGES: Final[Mapping[str, int]] = {
    "initialize": 1,
    "resources/subscribe": 1,
    "subscriptions/listen": 1,
    "resources/unsubscribe": 4,
    "logging/setLevel": 3,
    "tasks/cancel": 3,
    "tasks/update": 3,
}


def activity_of(call: Mapping[str, Any]) -> int:
    """Give the activity of a call: 1 create, 2 read, 3 update, 4 delete, 99 other.

    A tool says only whether it reads, and whether what it changes may be lost.
    """
    method: str = call.get("method", "")
    if method == "tools/call":
        if call.get("read_only"):
            return 2

        if call.get("destructive"):
            return 4

        return 3 if call.get("destructive") is False else 99

    if method.endswith(("/list", "/read", "/get", "/templates/list")) or method in READS:
        return 2

    return CHANGES.get(method, 99)
