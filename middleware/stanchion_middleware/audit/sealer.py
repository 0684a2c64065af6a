"""The sealer: records become entries, each linked to the one before, and heads are signed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

from ..reporting import report_failure
from .entry import Entry, Key, Kind, Tip, seal
from .keys import HeadSigner
from .queue import Losses
from .record import Evidence, Recorder, line

logger = logging.getLogger("stanchion.audit")


class Sealer:
    """Makes the entries of one chain, in one thread at a time.

    Attributes:
        tip: Where the chain ends.
        calls: How many calls have an entry, since this process began to write.
    """

    def __init__(
        self,
        tip: Tip,
        recorder: Recorder,
        *,
        key: Key | None,
        signer: HeadSigner | None,
        head_every: int,
        head_interval: float,
        clock: Callable[[], float],
    ) -> None:
        """Go on from *tip*; see `Audit` for the options."""
        self.tip = tip
        self.calls: int = 0
        self._recorder = recorder
        self._key = key
        self._signer = signer
        self._head_every = head_every
        self._head_interval = head_interval
        self._clock = clock
        self._unsigned: int = 0
        self._signed_at: float = clock()

    def opened(
        self, body: Mapping[str, Any], interrupted: Sequence[Mapping[str, Any]]
    ) -> list[Entry]:
        """Give the first entries of a process.

        Raises:
            Exception: The keys of subjects cannot be had.
        """
        entries = [self._seal(Kind.OPENED, body)]
        found = map(self._recorder.interrupted, interrupted)
        entries += [self._seal(Kind.INTERRUPTED, each) for each in found]
        self._unsigned += len(entries)
        return entries

    def sealed(self, batch: Sequence[Evidence], losses: Losses, *, closing: bool) -> list[Entry]:
        """Give the entries of a batch: what was lost before, the calls, and a head if it is due.

        Args:
            batch: The calls.
            losses: What was lost before them.
            closing: Whether nothing follows.

        Raises:
            Exception: They cannot be sealed; nothing of them is, and they may be given again.
        """
        before = self.tip, self.calls, self._unsigned, self._signed_at
        try:
            return self._all_sealed(batch, losses, closing)
        except BaseException:
            # Else the chain would have a hole where half of the batch was.
            self.tip, self.calls, self._unsigned, self._signed_at = before
            raise

    def _all_sealed(self, batch: Sequence[Evidence], losses: Losses, closing: bool) -> list[Entry]:
        entries = [self._seal(Kind.LOST, losses.told())] if losses.count else []
        entries += map(self._call, batch)
        self.calls += len(batch)
        if closing:
            entries.append(self._seal(Kind.CLOSED, {"calls": self.calls}))

        self._unsigned += len(entries)
        if self._signer is not None and (closing or self.head_is_due()):
            entries.append(self._seal(Kind.HEAD, self._signer.sign(self.tip)))
            self._unsigned, self._signed_at = 0, self._clock()

        return entries

    def head_is_due(self) -> bool:
        """Whether it is time to sign."""
        return self._unsigned >= self._head_every or self.next_head() <= 0

    def next_head(self) -> float:
        """Give the seconds until it is; infinite where there is nothing to sign, or no key."""
        if self._signer is None or not self._unsigned:
            return inf

        # A clock that is set back must not put it off for longer than the interval.
        return min(self._signed_at + self._head_interval - self._clock(), self._head_interval)

    def _call(self, evidence: Evidence) -> Entry:
        try:
            return self._seal(Kind.CALL, self._recorder.body(evidence))
        except Exception as error:  # noqa: BLE001 # a record that says little is better than none
            id = evidence.correlation_id
            report_failure(logger, "the audit record of call %s is incomplete", id)
            return self._seal(Kind.CALL, _least(evidence, error))

    def _seal(self, kind: Kind, body: Mapping[str, Any]) -> Entry:
        entry = seal(self.tip, kind, body, self._clock(), self._key)
        self.tip = Tip(entry.chain, entry.sequence, entry.hash)
        return entry


def _least(evidence: Evidence, error: Exception) -> dict[str, Any]:
    """Give what can be told of a call whose record could not be made."""
    return {
        "outcome": evidence.ending.outcome.value,
        "decision": "unknown",
        "call": {"method": line(evidence.call.method)},
        "correlation_id": line(evidence.correlation_id),
        "incomplete": type(error).__name__,
    }
