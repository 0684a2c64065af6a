"""A sink that keeps entries in memory, for tests and for looking at a running server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .entry import Entry, Kind, Tip
from .sink import AuditSink


class MemorySink(AuditSink):
    """Keeps entries in memory, of which the oldest go once there are too many.

    Attributes:
        entries: What is kept, oldest first.
        dropped: How many have gone.
    """

    name = "memory"
    durable = False

    def __init__(self, max_entries: int = 100_000) -> None:
        """Bound the sink.

        Args:
            max_entries: How many entries are kept, 1 or more.
        """
        self.entries: list[Entry] = []
        self.dropped = 0
        self._max_entries = max_entries

    @property
    def records(self) -> list[Mapping[str, Any]]:
        """The bodies of those that tell of calls."""
        return [each.content["body"] for each in self.entries if each.kind == Kind.CALL]

    @property
    def lines(self) -> list[bytes]:
        """The entries as a trail's lines."""
        return [each.line for each in self.entries]

    async def write(self, entries: Sequence[Entry]) -> None:
        """Keep *entries*, but for those that are there already."""
        known = {(each.chain, each.sequence) for each in self.entries[-len(entries) :]}
        self.entries += [each for each in entries if (each.chain, each.sequence) not in known]
        over = len(self.entries) - self._max_entries
        if over > 0:
            del self.entries[:over]
            self.dropped += over

    async def resume(self) -> Tip | None:
        """Give the end of the chain that was written last, or None."""
        if not self.entries:
            return None

        last = self.entries[-1]
        return Tip(last.chain, last.sequence, last.hash)
