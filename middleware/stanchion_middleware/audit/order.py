"""The order of one chain's entries: which follow one another, and what is out of place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from .entry import GENESIS
from .finding import Finding, Flaw, Note, Place
from .read_entry import ReadEntry

MAX_GAPS: Final = 64

_UNFIT: Final = "what it says does not fit its hash"


class Seen(NamedTuple):
    """An entry at its place.

    Attributes:
        entry: The entry.
        intact: Whether what it says fits its hash, as far as that can be told.
        digest: The hash that fits what it says; the one that it states where the key is unknown.
        place: Where it is.
        ordinal: Which line of the whole trail it is.
    """

    entry: ReadEntry
    intact: bool
    digest: str
    place: Place
    ordinal: int


@dataclass(slots=True)
class Misfit:
    """A line that could not be told to belong anywhere; a gap may turn out to be its place.

    Attributes:
        finding: What was found.
        ordinal: Which line of the whole trail it is.
        hash: The hash that it states, if it is an entry.
        near: The order of the chain whose entry was read last.
    """

    finding: Finding
    ordinal: int
    hash: str | None
    near: Order | None


@dataclass(slots=True)
class _Gap:
    low: int
    high: int
    above: str  # what the entry behind it says is the hash before
    place: Place
    refilling: bool = False


class Order:
    """Where a chain stands.

    Attributes:
        chain: The id of the chain.
        first: The number of its first entry; None before that.
        sequence: The number of the entry that it stands at; -1 before the first.
        tips: The hashes that the next entry may state as the one before: the one which the entry
            states, and where that is wrong or it is not alone, others.
        ordinal: Which line of the trail that entry is.
    """

    def __init__(
        self, chain: str, misfits: list[Misfit], note: Callable[[Finding], Note], *, whole: bool
    ) -> None:
        """Begin before the first entry.

        Args:
            chain: The id of the chain.
            misfits: The lines of the trail that belong nowhere so far.
            note: Notes a finding.
            whole: Whether the chain must begin with its first entry.
        """
        self.chain = chain
        self.first: int | None = None
        self.sequence = -1
        self.tips: tuple[str, ...] = (GENESIS,)
        self.ordinal = -1
        self.place = Place("", 0)
        self._before: tuple[str, ...] = ()
        self._suspect: Note | None = None
        self._fork: tuple[str, Note, Place] | None = None
        self._misfits = misfits
        self._note = note
        self._whole = whole
        self._gaps: list[_Gap] = []

    def is_next(self, seen: Seen) -> bool:
        """Say whether an entry follows, and is as it was sealed."""
        entry = seen.entry
        return seen.intact and entry.previous in self.tips and entry.sequence == self.sequence + 1

    def advance(self, seen: Seen, suspect: Note | None = None) -> None:
        """Stand at the entry *seen*; *suspect* is what was noted of it, if it may be changed."""
        entry = seen.entry
        if self._fork is not None:
            self._settle(entry.previous)

        self._before = self.tips
        self.tips = (entry.hash,) if seen.digest == entry.hash else (entry.hash, seen.digest)
        self.sequence += 1
        self.ordinal = seen.ordinal
        self.place = seen.place
        self._suspect = suspect
        if self.first is None:
            self.first = self.sequence

    def place_stray(self, seen: Seen) -> bool:
        """Find out what an entry is that does not follow, note it, and say if it counts as one."""
        entry = seen.entry
        if self.first is None and not self._whole and seen.intact:
            self.sequence, self.tips = entry.sequence - 1, (entry.previous,)
            self.advance(seen)
            return True

        if not seen.intact:
            return self._place_edited(seen)

        if entry.sequence == self.sequence + 1:
            self._break(seen)
            return True

        if entry.sequence > self.sequence:
            self._skip(seen)
            return True

        if entry.sequence == self.sequence and entry.previous in self._before:
            return self._branch(seen)

        return self._fill(seen)

    @property
    def has_gaps(self) -> bool:
        """Whether entries are missing so far."""
        return bool(self._gaps)

    def end(self) -> None:
        """Note the holes that nothing has filled."""
        for gap in self._gaps:
            self._tell(gap)

    def _noted(self, flaw: Flaw, sequence: int, place: Place, detail: str = "") -> Note:
        return self._note(Finding(flaw, detail, place, self.chain, sequence))

    def _place_edited(self, seen: Seen) -> bool:
        """Place an entry that cannot be believed: by the hash before it, or by its number."""
        entry, next_sequence = seen.entry, self.sequence + 1
        if entry.previous not in self.tips and entry.sequence != next_sequence:
            finding = Finding(Flaw.EDITED, _UNFIT, seen.place)
            self._misfits.append(Misfit(finding, seen.ordinal, entry.hash, self))
            return False

        detail = _UNFIT
        if entry.sequence != next_sequence:
            detail += f"; it says that it is entry {entry.sequence}"

        if entry.chain != self.chain:
            detail += f"; it says that it is of chain {entry.chain}"

        self.advance(seen, self._noted(Flaw.EDITED, next_sequence, seen.place, detail))
        return True

    def _break(self, seen: Seen) -> None:
        """Take the next number though it was sealed behind another hash."""
        number = seen.entry.sequence
        suspect = None
        if self._suspect is None:
            if self.sequence < 0:
                detail = "it is the first, and says that another is before it"
                suspect = self._noted(Flaw.REPLACED, number, seen.place, detail)
            else:
                detail = f"entry {number} was sealed behind another in its place"
                suspect = self._noted(Flaw.REPLACED, self.sequence, self.place, detail)
        elif self._suspect.finding.flaw is Flaw.REPLACED and (
            self._suspect.finding.sequence == self.sequence - 1
        ):
            # It fits neither the one before nor the one behind: so it is the one.
            detail = "it fits neither the entry before it nor the one behind it"
            self._suspect.amend(sequence=self.sequence, place=self.place, detail=detail)

        self.advance(seen, suspect)

    def _skip(self, seen: Seen) -> None:
        """Take an entry whose number is too high; what lies between is missing or comes late."""
        low, high = self.sequence + 1, seen.entry.sequence - 1
        between = [each for each in self._misfits if each.ordinal > self.ordinal]
        if len(between) == high - low + 1:
            for number, misfit in enumerate(between, low):
                self.adopt(misfit, number)

            high = low - 1
        elif between and between[-1].hash == seen.entry.previous:
            self.adopt(between[-1], high)
            high -= 1

        if high >= low:
            self._gaps.append(_Gap(low, high, seen.entry.previous, seen.place))
            if len(self._gaps) > MAX_GAPS:
                self._tell(self._gaps.pop(0))

        self.sequence, self.tips = seen.entry.sequence - 1, (seen.entry.previous,)
        self.advance(seen)

    def adopt(self, misfit: Misfit, sequence: int) -> None:
        """Take a line that belonged nowhere for the entry *sequence* of this chain."""
        self._misfits.remove(misfit)
        found = misfit.finding
        flaw = Flaw.UNREADABLE if found.flaw is Flaw.TORN else found.flaw
        self._note(Finding(flaw, found.detail, found.place, self.chain, sequence))

    def _branch(self, seen: Seen) -> bool:
        """Take a second entry in the place of the last one: one of them was put in."""
        entry = seen.entry
        if self._suspect is not None and self._suspect.finding.flaw is Flaw.EDITED:
            self._suspect.amend(flaw=Flaw.INSERTED, detail="the chain goes on behind it")
            self.tips, self._suspect, self.place = (entry.hash,), None, seen.place
            return False

        if entry.hash in self.tips:
            self._noted(Flaw.DUPLICATE, entry.sequence, seen.place, "the line before, once more")
            return False

        detail = f"line {self.place.number} has the same number and is before it"
        note = self._noted(Flaw.INSERTED, entry.sequence, seen.place, detail)
        self._fork = entry.hash, note, self.place
        self.tips = (*self.tips, entry.hash)
        return False

    def _settle(self, previous: str) -> None:
        """See which of two entries in one place the chain goes on behind."""
        assert self._fork is not None  # noqa: S101
        hash, note, place = self._fork
        if previous == hash:
            note.amend(place=place, detail="the chain goes on behind another in its place")

        self._fork = None

    def _fill(self, seen: Seen) -> bool:
        """Take an entry whose number has passed: it comes late, or a second time."""
        entry = seen.entry
        number = entry.sequence
        gap = next((each for each in self._gaps if each.low <= number <= each.high), None)
        if gap is None:
            self._noted(Flaw.DUPLICATE, number, seen.place, "an earlier line has this number")
            return False

        if not gap.refilling:
            self._noted(
                Flaw.REORDERED, number, seen.place, "it was written before what precedes it"
            )

        if number == gap.high and entry.hash != gap.above:
            detail = f"entry {number + 1} was sealed behind another in its place"
            self._noted(Flaw.REPLACED, number, seen.place, detail)

        self._gaps.remove(gap)
        if number > gap.low:
            self._gaps.append(_Gap(gap.low, number - 1, entry.previous, gap.place))

        if number < gap.high:
            # What comes behind it in order was not moved; what stands before it was.
            self._gaps.append(_Gap(number + 1, gap.high, gap.above, gap.place, refilling=True))

        return True

    def _tell(self, gap: _Gap) -> None:
        count = gap.high - gap.low + 1
        detail = "one entry is missing" if count == 1 else f"{count} entries are missing"
        self._note(Finding(Flaw.HOLE, detail, gap.place, self.chain, gap.low, gap.high))
