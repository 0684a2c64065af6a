"""The check of one chain: its entries' order, keys, signed heads and anchors."""

from __future__ import annotations

import base64
import binascii
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from stanchion import Outcome

from .canonical import canonical
from .chain_report import ChainReport
from .entry import Kind
from .finding import Finding, Flaw, Note, Notes
from .order import Misfit, Order, Seen
from .read_entry import ReadEntry

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

_OUTCOMES: Final = frozenset(Outcome)


class Demands(NamedTuple):
    """What all chains of a trail are held against; see `verify_trail`."""

    keys: frozenset[str]
    signers: Mapping[str, Ed25519PublicKey] | None
    allow_unkeyed: bool
    whole: bool
    max_findings: int


class ChainCheck:
    """One chain while it is read.

    Attributes:
        order: Where it stands.
    """

    def __init__(
        self, chain: str, demands: Demands, anchors: dict[int, str], misfits: list[Misfit]
    ) -> None:
        """Begin before its first entry.

        Args:
            chain: Its id.
            demands: What it is held against.
            anchors: The hashes of entries that are kept elsewhere, by their numbers.
            misfits: The lines of the trail that belong nowhere so far.
        """
        self.order = Order(chain, misfits, self.note, whole=demands.whole)
        self._demands = demands
        self._anchors = anchors
        self._notes = Notes(demands.max_findings)
        self._sound = True
        self._consistent_to: int | None = None
        self._keyed_to: int | None = None
        self._signed_to: int | None = None
        self._anchored_to: int | None = None
        self._signed_heads = 0
        self._all_keyed = True
        self._ever_keyed = False
        self._unkeyed_told = False
        self._unknown_keys: set[str] = set()
        self._kinds: Counter[str] = Counter()
        self._outcomes: Counter[str] = Counter()
        self._lost = 0
        self._began = ""
        self._last: ReadEntry | None = None
        self._closed_at: int | None = None

    def note(self, finding: Finding) -> Note:
        """Note a finding of this chain."""
        note = Note(finding)
        self._notes.add(note)
        flaw, sequence = finding.flaw, finding.sequence
        if self._sound and not flaw.is_warning:
            self._sound = False
            if sequence is not None and flaw is not Flaw.DUPLICATE:
                self._bound_at(sequence - 1)

        return note

    def findings(self) -> Iterator[Finding]:
        """Give what was found so far."""
        return iter(self._notes)

    def take(self, seen: Seen) -> None:
        """Take an entry that belongs to this chain, or seems to."""
        entry, order = seen.entry, self.order
        if seen.intact and not entry.canonical:
            detail = "it says what was sealed, in another spelling"
            self.note(Finding(Flaw.NOT_CANONICAL, detail, seen.place, order.chain, entry.sequence))

        if order.is_next(seen):
            order.advance(seen)
        elif not order.place_stray(seen):
            return
        elif order.has_gaps:
            self._sound = False  # noted at the end, once it is known what only came late

        self._count_in(seen)
        if self._anchors:
            self._check_anchor(seen)

        if self._sound:
            self._consistent_to = entry.sequence
            if self._all_keyed:
                self._keyed_to = entry.sequence

    def report(self) -> ChainReport | None:
        """End the check; None where there was no entry."""
        order, last = self.order, self._last
        order.end()
        if self._anchors:
            self._note_cut(max(self._anchors))

        if last is None or order.first is None:
            return None

        # What is closed is signed once more.
        ended = last.sequence - (last.kind == Kind.HEAD)
        closed = self._closed_at == ended and last.sequence == order.sequence
        if not closed:
            self._at_end(Flaw.UNCLOSED, "it is written still, its process died, or its end is gone")

        if self._demands.signers is not None and not self._signed_heads:
            self._at_end(Flaw.UNSIGNED, "no head of it could be verified")

        return ChainReport(
            order.chain,
            order.first,
            order.sequence,
            self._kinds.total(),
            self._began,
            last.time,
            dict(self._kinds),
            dict(self._outcomes),
            self._lost,
            closed,
            tuple(self._notes),
            self._notes.left_out,
            self._consistent_to,
            self._keyed_to,
            self._signed_to,
            self._anchored_to,
        )

    def _count_in(self, seen: Seen) -> None:
        entry = seen.entry
        if self._last is None:
            self._began = entry.time
            self._check_beginning(seen)

        self._last = entry
        self._kinds[entry.kind] += 1
        if seen.intact:
            self._check_key(seen)
            if entry.kind == Kind.CALL:
                self._outcomes[_outcome(entry.body.get("outcome"))] += 1
            else:
                self._look_into(seen)

    def _bound_at(self, sequence: int) -> None:
        def bounded(to: int | None) -> int | None:
            return None if to is None or sequence < 0 else min(to, sequence)

        self._consistent_to = bounded(self._consistent_to)
        self._keyed_to = bounded(self._keyed_to)

    def _at_end(self, flaw: Flaw, detail: str) -> None:
        self.note(Finding(flaw, detail, None, self.order.chain, self.order.sequence))

    def _found(self, flaw: Flaw, seen: Seen, detail: str) -> None:
        self.note(Finding(flaw, detail, seen.place, self.order.chain, seen.entry.sequence))

    def _check_beginning(self, seen: Seen) -> None:
        if seen.entry.sequence == 0 and seen.entry.kind != Kind.OPENED:
            self._found(Flaw.BAD_OPENING, seen, "it is the first, and not of the kind opened")

    def _check_key(self, seen: Seen) -> None:
        key = seen.entry.key
        if key is None:
            self._all_keyed = False
            required = self._ever_keyed or (self._demands.keys and not self._demands.allow_unkeyed)
            if required and not self._unkeyed_told:
                self._unkeyed_told = True
                self._found(Flaw.UNKEYED, seen, "its hash is plain, as those behind it may be")
        elif key not in self._demands.keys:
            self._all_keyed = False
            if key not in self._unknown_keys and len(self._unknown_keys) < 100:
                self._unknown_keys.add(key)
                self._found(Flaw.UNKNOWN_KEY, seen, f"no hash with key {key!r} is verified")
        else:
            self._ever_keyed, self._unkeyed_told = True, False

    def _look_into(self, seen: Seen) -> None:
        entry = seen.entry
        if entry.kind == Kind.HEAD:
            self._check_head(seen)
        elif entry.kind == Kind.LOST:
            count = _count(entry.body.get("count"))
            self._lost += count
            reason = str(entry.body.get("reason", "no reason is told"))[:200]
            self._found(Flaw.LOST, seen, f"{count} records: {reason}")
        elif entry.kind == Kind.CLOSED:
            self._closed_at = entry.sequence
        elif entry.kind == Kind.OPENED:
            torn = _count(entry.body.get("torn"))
            if torn:
                self._found(Flaw.TORN, seen, f"{torn} bytes before it were no whole entry")

            if entry.body.get("continues") is not (entry.sequence > 0):
                self._found(Flaw.BAD_OPENING, seen, "it says wrongly whether it continues a chain")

    def _check_head(self, seen: Seen) -> None:
        entry, signers = seen.entry, self._demands.signers
        if signers is None:
            return

        body = entry.body
        if not _signs(body, entry):
            self._found(Flaw.BAD_SIGNATURE, seen, "it signs something else than the entry before")
            return

        signer = signers.get(str(body.get("key_id")))
        if signer is None:
            self._found(Flaw.UNKNOWN_SIGNER, seen, f"signed with key {body.get('key_id')!r:.200}")
            return

        if not _verifies(signer, body):
            self._found(Flaw.BAD_SIGNATURE, seen, "the signature is not that of its key")
            return

        self._signed_heads += 1
        if self._sound:
            self._signed_to = entry.sequence - 1

    def _check_anchor(self, seen: Seen) -> None:
        entry = seen.entry
        kept = self._anchors.pop(entry.sequence, None)
        if kept is None:
            return

        if kept != entry.hash:
            self._found(Flaw.REWRITTEN, seen, "another hash of it is kept elsewhere")
        elif self._sound:
            self._anchored_to = entry.sequence

    def _note_cut(self, anchored: int) -> None:
        """Note what is missing at the end up to the last entry that is kept elsewhere."""
        last = self.order.sequence
        if anchored > last:
            detail = "a head that is kept elsewhere is of a later entry"
            self.note(Finding(Flaw.CUT_OFF, detail, None, self.order.chain, last + 1, anchored))


def _outcome(value: Any) -> str:
    # Bounded words: a trail may have been written by somebody else.
    return value if type(value) is str and value in _OUTCOMES else "other"


def _count(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0


def _signs(body: Mapping[str, Any], entry: ReadEntry) -> bool:
    """Say whether a head is one over the entry before it."""
    return (
        body.get("algorithm") == "Ed25519"
        and body.get("chain") == entry.chain
        and body.get("sequence") == entry.sequence - 1
        and body.get("hash") == entry.previous
        and type(body.get("signature")) is str
    )


def _verifies(signer: Ed25519PublicKey, body: Mapping[str, Any]) -> bool:
    from cryptography.exceptions import InvalidSignature

    signed = canonical({name: body[name] for name in ("chain", "hash", "sequence")})
    try:
        padded = body["signature"] + "=" * (-len(body["signature"]) % 4)
        signer.verify(base64.b64decode(padded, altchars=b"-_", validate=True), signed)
    except (InvalidSignature, binascii.Error, ValueError):
        return False

    return True
