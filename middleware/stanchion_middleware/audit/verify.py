"""The verification of a trail: what is wrong with it, and how far it is proven."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from stanchion import ConfigurationError

from .chain_check import ChainCheck, Demands
from .chain_report import ChainReport
from .entry import GENESIS, Key, digest_of
from .finding import Finding, Flaw, Note, Notes, Place
from .order import Misfit, Seen
from .read_entry import NoEntry, ReadEntry, read_entry
from .trail import Line

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

MAX_MISFITS: Final = 1000


class Anchored(NamedTuple):
    """A head that was kept elsewhere: at that time, the entry had this hash.

    Attributes:
        chain: The chain.
        sequence: The number of the entry.
        hash: Its hash, in hexadecimal.
    """

    chain: str
    sequence: int
    hash: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found of a trail.

    Attributes:
        chains: Its chains, in the order in which they begin.
        stray: What was found of lines that belong to no chain.
        left_out: How many findings there were more, of which only the number was kept.
        lines: How many lines were read.
    """

    chains: tuple[ChainReport, ...]
    stray: tuple[Finding, ...]
    left_out: int
    lines: int

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All that was found: by chain, and then the lines of none."""
        return (*(each for chain in self.chains for each in chain.findings), *self.stray)

    @property
    def ok(self) -> bool:
        """Whether no fault was found. What that is worth, the `proof` of each chain says."""
        return all(finding.flaw.is_warning for finding in self.findings)


def verify_trail(
    trail: Iterable[Line],
    *,
    keys: Iterable[Key] = (),
    signers: Mapping[str, Ed25519PublicKey] | None = None,
    anchors: Iterable[Anchored] = (),
    allow_unkeyed: bool = False,
    whole: bool = True,
    max_findings: int = 100,
) -> Verification:
    """Verify a trail, and name all that is wrong with it.

    The trail is read once, from its begin to its end; what is kept of it is bounded for each
    chain. It blocks: 20 to 30 seconds for a million entries.

    Args:
        trail: Its lines, such as a `Trail`.
        keys: Those of keyed hashes. Where any is given, every entry must have a keyed hash.
        signers: The public keys of signed heads by their ids; with None heads are not verified.
        anchors: Heads that were kept elsewhere.
        allow_unkeyed: Whether a chain may begin with plain hashes, from before there were keys.
        whole: Whether every chain must begin with its first entry; False where the oldest files
            were deleted, or for a part of a trail.
        max_findings: How many faults and how many warnings of each chain are kept, 1 or more.

    Raises:
        ConfigurationError: *max_findings* is less than 1, or two keys have the same id.
        Exception: What reading the trail raised.
    """
    given = list(keys)
    by_id = {key.id: key for key in given}
    if max_findings < 1 or len(by_id) < len(given):
        raise ConfigurationError("verify_trail: max_findings is 1 or more, and ids of keys differ")

    demands = Demands(frozenset(by_id), signers, allow_unkeyed, whole, max_findings)
    return _Reader(demands, by_id, anchors).read(trail)


class _Reader:
    """Takes the lines of a trail apart into chains."""

    def __init__(
        self, demands: Demands, keys: Mapping[str, Key], anchors: Iterable[Anchored]
    ) -> None:
        self._demands = demands
        self._keys = keys
        self._anchors: dict[str, dict[int, str]] = {}
        self._notes = Notes(demands.max_findings)
        for each in anchors:
            self._anchors.setdefault(each.chain, {})[each.sequence] = each.hash

        self._checks: dict[str, ChainCheck] = {}
        self._misfits: list[Misfit] = []
        self._near: ChainCheck | None = None

    def read(self, trail: Iterable[Line]) -> Verification:
        ordinal = -1
        for ordinal, line in enumerate(trail):
            place = Place(line.file, line.number)
            try:
                entry = read_entry(line.text)
            except NoEntry as problem:
                self._set_apart(_unreadable(line, place, problem), ordinal)
                continue

            key = None if entry.key is None else self._keys.get(entry.key)
            unknown = entry.key is not None and key is None
            digest = entry.hash if unknown else digest_of(entry.previous, entry.sealed, key)
            seen = Seen(entry, digest == entry.hash, digest, place, ordinal)
            check = self._check_for(entry, intact=seen.intact)
            if check is None:
                detail = "what it says does not fit its hash, and it belongs to no chain"
                self._set_apart(Finding(Flaw.EDITED, detail, place), ordinal)
                continue

            check.take(seen)
            self._near = check

        return self._ended(ordinal + 1)

    def _check_for(self, entry: ReadEntry, *, intact: bool) -> ChainCheck | None:
        check = self._checks.get(entry.chain)
        if intact:
            return check or self._begin(entry.chain)

        if check is not None and entry.previous in check.order.tips:
            return check

        # Its chain may be what was changed: the hash before it says where it belongs.
        if entry.previous != GENESIS:
            for each in self._checks.values():
                if entry.previous in each.order.tips:
                    return each

        if check is None and entry.previous == GENESIS:
            return self._begin(entry.chain)

        return check

    def _begin(self, chain: str) -> ChainCheck:
        anchors = self._anchors.pop(chain, {})
        check = ChainCheck(chain, self._demands, anchors, self._misfits)
        self._checks[chain] = check
        return check

    def _set_apart(self, finding: Finding, ordinal: int) -> None:
        near = None if self._near is None else self._near.order
        self._misfits.append(Misfit(finding, ordinal, None, near))
        if len(self._misfits) > MAX_MISFITS:
            self._notes.add(Note(self._misfits.pop(0).finding))

    def _ended(self, lines: int) -> Verification:
        self._place_last()
        for chain in list(self._anchors):
            self._begin(chain)

        # A chain of which nothing is left but a head elsewhere has no report of its own.
        reports = [(check, check.report()) for check in self._checks.values()]
        gone = [found for check, report in reports if report is None for found in check.findings()]
        for each in (*(misfit.finding for misfit in self._misfits), *gone):
            self._notes.add(Note(each))

        chains = tuple(report for _, report in reports if report is not None)
        left_out = self._notes.left_out + sum(each.left_out for each in chains)
        return Verification(chains, tuple(self._notes), left_out, lines)

    def _place_last(self) -> None:
        """Take unreadable lines behind the last entry of a chain for entries of it."""
        numbers: Counter[str] = Counter()
        for misfit in list(self._misfits):
            near = misfit.near
            if near is None or misfit.ordinal < near.ordinal or misfit.finding.flaw is Flaw.TORN:
                continue

            numbers[near.chain] += 1
            near.adopt(misfit, near.sequence + numbers[near.chain])


def _unreadable(line: Line, place: Place, problem: NoEntry) -> Finding:
    if line.whole:
        return Finding(Flaw.UNREADABLE, str(problem), place)

    detail = f"{len(line.text)} bytes that are no whole entry, and no line break"
    return Finding(Flaw.TORN, detail, place)
