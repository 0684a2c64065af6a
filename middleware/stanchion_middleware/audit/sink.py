"""Where the entries of a trail go: the base class of sinks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Self

from .entry import Entry, Tip


class AuditSink(ABC):
    """Keeps the entries of a trail, or sends them to whoever does.

    A subclass overrides `write`, and what else it needs. One writer calls it, one batch at a time,
    so it needs no lock of its own against itself. It never changes an entry: `entry.line` is what
    was sealed, to the byte.

    Attributes:
        name: What logs and metrics call it.
        durable: Whether an entry survives the process once `write` has returned.
    """

    name: ClassVar[str] = "sink"
    durable: bool = True

    @abstractmethod
    async def write(self, entries: Sequence[Entry]) -> None:
        """Keep *entries*, in order; they are safe once this returns.

        After a failure the writer gives the same entries again, followed by later ones. An entry
        that is there already must then not be there twice: it is known by chain and sequence.

        Raises:
            Exception: They are not all kept; which, does not matter.
        """

    async def resume(self) -> Tip | None:
        """Give the end of the chain that is to be gone on with; None begins a new one.

        Asked once, after the sink was opened, of the first sink of a trail.

        Raises:
            Exception: It cannot be told, or somebody else writes the chain.
        """
        return None

    async def __aenter__(self) -> Self:
        """Open what the sink needs."""
        return self

    async def __aexit__(self, *raised: object) -> None:  # noqa: B027 # not all have what to close
        """Close it; whatever was given to `write` has been kept or has failed by then."""
