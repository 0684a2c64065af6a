"""What a chain was found to be, and how far anything vouches for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from .finding import Finding


class Proof(StrEnum):
    """What vouches for the entries of a chain; each is worth what its secret is."""

    NOTHING = "nothing"
    """Not even its first entry is sound."""
    CONSISTENT = "consistent"
    """Hashes and numbers fit one another. An accident is excluded; whoever can write the trail
    could have written all of it anew."""
    KEYED = "keyed"
    """Whoever wrote it had the secret of the keyed hashes. Who has it could have written all of
    it anew, and the end may be cut off."""
    SIGNED = "signed"
    """A head was signed with a private key that is not needed to verify. Who has that could have
    written all of it anew, and the end may be cut off."""
    ANCHORED = "anchored"
    """A head is kept elsewhere. It is as it was then, whatever secrets got lost later."""


@dataclass(frozen=True, slots=True)
class ChainReport:
    """One chain of a trail.

    `consistent_to`, `keyed_to`, `signed_to` and `anchored_to` are numbers of entries, up to and
    with which nothing is wrong and they are vouched for so; None where none is.

    Attributes:
        chain: Its id.
        first: The number of its first entry.
        last: The number of its last entry.
        entries: How many there are.
        began: The time of its first entry, RFC 3339.
        ended: The time of its last entry.
        kinds: How many entries of each kind there are.
        outcomes: How many calls ended with each outcome.
        lost: How many records its writer says that it could not keep.
        closed: Whether its last entry is `closed`, but for a head over that.
        findings: What was found of it, faults before warnings.
        left_out: How many findings there were more.
        consistent_to: Up to where hashes and numbers fit.
        keyed_to: Up to where all hashes are keyed, and were verified.
        signed_to: Up to where a signed head vouches.
        anchored_to: Up to where a head that is kept elsewhere vouches.
    """

    chain: str
    first: int
    last: int
    entries: int
    began: str
    ended: str
    kinds: Mapping[str, int]
    outcomes: Mapping[str, int]
    lost: int
    closed: bool
    findings: tuple[Finding, ...]
    left_out: int
    consistent_to: int | None
    keyed_to: int | None
    signed_to: int | None
    anchored_to: int | None

    @property
    def ok(self) -> bool:
        """Whether no fault was found; warnings are none."""
        return all(finding.flaw.is_warning for finding in self.findings)

    @property
    def first_bad(self) -> Finding | None:
        """The fault of the lowest number, if there is one."""
        faults = [finding for finding in self.findings if not finding.flaw.is_warning]
        return min(faults, key=lambda fault: fault.sequence or 0, default=None)

    @property
    def proven_to(self) -> int | None:
        """The last entry that a key, a signature or an anchor vouches for."""
        vouched = (self.keyed_to, self.signed_to, self.anchored_to)
        return max((each for each in vouched if each is not None), default=None)

    @property
    def proof(self) -> Proof:
        """The strongest that vouches for any of it."""
        if self.anchored_to is not None:
            return Proof.ANCHORED

        if self.signed_to is not None:
            return Proof.SIGNED

        if self.keyed_to is not None:
            return Proof.KEYED

        return Proof.NOTHING if self.consistent_to is None else Proof.CONSISTENT

    def __str__(self) -> str:
        parts = [f"chain {self.chain}: {self.entries} entries, {self.first} to {self.last}"]
        for word, to in (
            ("consistent", self.consistent_to),
            ("keyed", self.keyed_to),
            ("signed", self.signed_to),
            ("anchored", self.anchored_to),
        ):
            parts.append(f"not {word}" if to is None else f"{word} up to {to}")

        proven = -1 if self.proven_to is None else self.proven_to
        behind = self.last - max(proven, self.first - 1)
        if behind > 0:
            parts.append(
                f"of the last {behind} nothing but their own hashes speaks: whoever can write the "
                "trail could have written them"
            )

        return "; ".join(parts)
