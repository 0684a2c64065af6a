"""Which entries of a trail are wanted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from .entry import Entry, Kind
from .facts import fact
from .sql_rows import microseconds

_PATHS: Final = {
    "tenant": ("actor", "tenant"),
    "subject": ("actor", "subject"),
    "tool": ("call", "target"),
    "method": ("call", "method"),
    "outcome": ("outcome",),
    "correlation_id": ("correlation_id",),
}


@dataclass(frozen=True, slots=True)
class Selection:
    """Conditions, each of which that is given must hold.

    Attributes:
        since: Not sealed before that time, in microseconds since 1970.
        until: Sealed before that time, likewise.
        tenant: For which tenant.
        subject: By whom.
        tool: Which tool, prompt or resource.
        method: What was called.
        outcome: How the call ended; `interrupted` for one that its process did not survive.
        correlation_id: Under which correlation id.
    """

    since: int | None = None
    until: int | None = None
    tenant: str | None = None
    subject: str | None = None
    tool: str | None = None
    method: str | None = None
    outcome: str | None = None
    correlation_id: str | None = None

    def takes(self, entry: Entry) -> bool:
        """Say whether *entry* is wanted."""
        if not self._in_time(entry):
            return False

        body = cast("Mapping[str, Any]", entry.content["body"])
        for name, path in _PATHS.items():
            wanted = getattr(self, name)
            if wanted is None:
                continue

            found = fact(body, path)
            if name == "outcome" and entry.kind == Kind.INTERRUPTED:
                found = "interrupted"

            if found != wanted:
                return False

        return True

    def _in_time(self, entry: Entry) -> bool:
        if self.since is None and self.until is None:
            return True

        try:
            at = microseconds(entry.content["time"])
        except ValueError:
            return False  # whoever wrote that did not write the trail

        return (self.since is None or at >= self.since) and (self.until is None or at < self.until)
