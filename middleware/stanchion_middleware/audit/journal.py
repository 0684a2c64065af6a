"""The journal: which calls are running, in a file that outlives the process.

A process that is killed writes no record of the calls that it had begun. The journal is a
memory-mapped file of slots, so that a slot is in the system's hands as soon as it is filled. What
the next process finds in it are the calls whose records the trail does not have. A slot is marked
with the number of its record before that is written, so that one written at the very end is known.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, cast

import orjson

from stanchion import ConfigurationError

from .entry import Tip, timestamp
from .file_lock import FileLock

SLOT: Final = 512
"""Bytes of a slot: its length and mark, and what is in it."""

CUT: Final = 48
"""Characters that are left of a text where not all fits a slot."""

MARK: Final = 2
"""Where the mark of a slot begins, behind two bytes of length, which are 0 where it is free."""

TEXT: Final = MARK + 8
"""Where what is in a slot begins, behind its mark: 1 more than the number of its entry, or 0."""

MAGIC: Final = b"stanchion journal 2\n"

CHAIN: Final = 64
"""Where the first slot, which is the head of the file, has the digest of the chain's id."""


class Journal:
    """Slots for calls that are running; of one process and one thread.

    It survives the end of the process, however it ends, but not that of the machine.

    Attributes:
        missed: Calls for which there was no slot left.
    """

    def __init__(self, path: Path, slots: int) -> None:
        """Open the journal; made where there is none.

        Args:
            path: The file.
            slots: How many calls it has room for.

        Raises:
            ConfigurationError: Another process has it open, or it is no journal.
            OSError: It cannot be opened.
        """
        self.missed = 0
        self._lock = FileLock(path, 0o600)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                size = max(os.fstat(descriptor).st_size, (slots + 1) * SLOT)
                os.ftruncate(descriptor, size)  # a hole, which takes no room on the disk
                self._map = mmap.mmap(descriptor, size)
            finally:
                os.close(descriptor)

            if self._map[: len(MAGIC)] not in (MAGIC, bytes(len(MAGIC))):
                self._map.close()
                raise ConfigurationError(f"{path} is no journal of an audit trail")
        except BaseException:
            self._lock.close()
            raise

        self._map[: len(MAGIC)] = MAGIC
        self._last = size // SLOT - 1
        self._next = 1
        self._free: list[int] = []
        self._filled: list[int] = []

    def found(self, tip: Tip | None = None) -> list[dict[str, Any]]:
        """Give what an earlier process had begun, in no order; it stays until `clear`.

        Args:
            tip: Where the trail ends that its records went to, or None where that is not known;
                what the trail has up to there is left out.
        """
        left: list[dict[str, Any]] = []
        recorded = -1
        if tip is not None and self._map[CHAIN : CHAIN + 16] == _digest(tip.chain):
            recorded = tip.sequence

        for slot in range(1, self._last + 1):
            start = slot * SLOT
            length = int.from_bytes(self._map[start : start + 2], "little")
            if not length:
                continue

            self._filled.append(slot)
            mark = int.from_bytes(self._map[start + MARK : start + TEXT], "little")
            if mark and mark - 1 <= recorded:
                continue

            try:
                told = orjson.loads(self._map[start + TEXT : start + TEXT + length])
            except orjson.JSONDecodeError:
                told = None  # the machine stopped, and not the process alone

            left.append(_read(told))

        return left

    def follow(self, chain: str) -> None:
        """Take note of the chain that marks speak of; once what was found is in it."""
        self._map[CHAIN : CHAIN + 16] = _digest(chain)

    def clear(self) -> None:
        """Free what was found, once that is in the trail; before the first `take`."""
        for slot in self._filled:
            self.free(slot)

        self._filled.clear()
        self._free.clear()

    def take(self, told: Mapping[str, Any]) -> int:
        """Fill a slot; gives its number, or 0 where there is none."""
        try:
            written = orjson.dumps(told)
        except TypeError:  # no Unicode, as a lone surrogate in the name of a subject
            written = b""

        if not written or len(written) > SLOT - TEXT:
            written = orjson.dumps(_shortened(told))

        if self._free:
            slot = self._free.pop()
        elif self._next <= self._last:
            slot = self._next
            self._next += 1
        else:
            self.missed += 1
            return 0

        start = slot * SLOT
        # What it says before how long that is: a slot that is half filled counts as free.
        self._map[start + TEXT : start + TEXT + len(written)] = written
        self._map[start : start + 2] = len(written).to_bytes(2, "little")
        return slot

    def mark(self, slot: int, sequence: int) -> None:
        """Note the number of the entry that records the call, before that is written."""
        if slot:
            start = slot * SLOT + MARK
            self._map[start : start + 8] = (sequence + 1).to_bytes(8, "little")

    def free(self, slot: int) -> None:
        """Free a slot that `take` gave."""
        if slot:
            start = slot * SLOT
            # All of it: who called should not be found here once the call has its record.
            self._map[start : start + SLOT] = bytes(SLOT)
            self._free.append(slot)

    def close(self) -> None:
        """Close the file, and give it to whoever wants it."""
        self._map.close()
        self._lock.close()


def _digest(chain: str) -> bytes:
    return blake2b(chain.encode(), digest_size=16).digest()


def _read(told: Any) -> dict[str, Any]:
    """Give what a slot says as an entry's body has it."""
    if not isinstance(told, dict):
        return {"unreadable": True}

    body = cast("dict[str, Any]", told)
    started_us = body.pop("started_us", None)
    if isinstance(started_us, int):
        body["started"] = timestamp(started_us / 1_000_000)

    return body


def _shortened(told: Mapping[str, Any]) -> dict[str, Any]:
    """Cut what a caller may have made long, or long to write: all of it then fits a slot."""
    return {
        name: _plain(value[:CUT]) if isinstance(value, str) else value
        for name, value in told.items()
    }


def _plain(text: str) -> str:
    """Give *text* as what JSON writes in as many bytes."""
    return "".join(
        each if each.isascii() and each.isprintable() and each not in '"\\' else "?"
        for each in text
    )
