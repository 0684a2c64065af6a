"""What is found in a trail that should not be there, or that whoever reads it must know."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final


class Flaw(StrEnum):
    """What is wrong, or worth knowing.

    What happened is inferred from what is left, and the smallest change that explains it is named:
    who can change one entry can make it look like another change.
    """

    UNREADABLE = "unreadable"
    """A line is no entry."""
    NOT_CANONICAL = "not canonical"
    """An entry says what was sealed, but is written otherwise."""
    EDITED = "edited"
    """What an entry says does not fit its hash."""
    REPLACED = "replaced"
    """An entry fits its hash, and the one behind it was sealed behind another."""
    HOLE = "hole"
    """Entries are missing."""
    REORDERED = "reordered"
    """An entry stands elsewhere than it was written."""
    DUPLICATE = "duplicate"
    """The number of an entry is taken by an earlier line."""
    INSERTED = "inserted"
    """A line is no part of the chain, which goes on past it."""
    UNKEYED = "unkeyed"
    """An entry has a plain hash, which anybody can renew, where it ought to have a keyed one."""
    UNKNOWN_KEY = "unknown key"
    """The hash of an entry is made with a key that was not given, and is not verified."""
    BAD_SIGNATURE = "bad signature"
    """A head is not what its signer signed."""
    UNKNOWN_SIGNER = "unknown signer"
    """A head is signed with a key that was not given."""
    REWRITTEN = "rewritten"
    """An entry is not the one whose hash is kept elsewhere."""
    CUT_OFF = "cut off"
    """Entries at the end are missing of which heads are kept elsewhere."""
    BAD_OPENING = "bad opening"
    """A chain does not begin with `opened`, or one says wrongly whether it continues a chain."""
    TORN = "torn"
    """A line at an end was not written in full, as a process that died leaves it; a warning."""
    UNCLOSED = "ends without being closed"
    """The last entry of a chain is not `closed`, nor a head over that: it is written still, the
    process died, or the end was cut off; a warning."""
    LOST = "lost"
    """The process itself tells of records that it could not keep; a warning."""
    UNSIGNED = "unsigned"
    """No head of the chain was verified with the public keys that were given; a warning."""

    @property
    def is_warning(self) -> bool:
        """Whether it is also found where nobody changed anything."""
        return self in _WARNINGS


_WARNINGS: Final = frozenset({Flaw.TORN, Flaw.UNCLOSED, Flaw.LOST, Flaw.UNSIGNED})


@dataclass(frozen=True, slots=True)
class Place:
    """Where a line is.

    Attributes:
        file: The file, or empty.
        number: The number of the line in it, from 1 on.
    """

    file: str
    number: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found.

    Attributes:
        flaw: What it is.
        detail: It in words.
        place: The line where it was noticed; None at the end of a trail.
        chain: The chain; None for a line that belongs to none.
        sequence: The number of the entry, or of the first of several; None where it has none.
        last: The number of the last of several, or None.
    """

    flaw: Flaw
    detail: str = ""
    place: Place | None = None
    chain: str | None = None
    sequence: int | None = None
    last: int | None = None

    def __str__(self) -> str:
        of = "" if self.chain is None else f" chain {self.chain}"
        number = "" if self.sequence is None else f" entry {self.sequence}"
        until = "" if self.last in (None, self.sequence) else f" to {self.last}"
        at = (
            ""
            if self.place is None
            else f" (line {self.place.number} {self.place.file}".rstrip() + ")"
        )
        what = f"{self.flaw}: {self.detail}" if self.detail else f"{self.flaw}"
        return f"{of}{number}{until}{at}: {what}".strip(" :")


class Note:
    """A finding that may have to be put in other words once more is read.

    Attributes:
        finding: The finding as it is understood now.
    """

    __slots__ = ("finding",)

    def __init__(self, finding: Finding) -> None:
        self.finding = finding

    def amend(self, **changes: Any) -> None:
        """Put the finding in other words."""
        self.finding = dataclasses.replace(self.finding, **changes)


class Notes:
    """Findings up to a bound; of faults and of warnings each.

    Attributes:
        left_out: How many more there were.
    """

    def __init__(self, bound: int) -> None:
        self.left_out = 0
        self._bound = bound
        self._faults: list[Note] = []
        self._warnings: list[Note] = []

    def __iter__(self) -> Iterator[Finding]:
        return (note.finding for note in (*self._faults, *self._warnings))

    def add(self, note: Note) -> None:
        """Keep a note, unless there are too many."""
        kept = self._warnings if note.finding.flaw.is_warning else self._faults
        if len(kept) < self._bound:
            kept.append(note)
        else:
            self.left_out += 1
