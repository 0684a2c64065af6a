"""A trail's entries to read: each as it was sealed, and with what a key opens of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from .canonical import canonical
from .entry import VERSION, Entry
from .read_entry import NoEntry, ReadEntry, read_entry
from .sealed_body import unseal_body
from .subject_keys import SubjectKeys
from .trail import Line


class Opened(NamedTuple):
    """An entry of a trail.

    Attributes:
        entry: The entry. Its `line` is what was sealed; its `content` is what can be read, with
            what the key of its subject opened.
        unsealed: Whether a key opened anything, so that the hash is not one of `content`.
    """

    entry: Entry
    unsealed: bool

    def text(self) -> bytes:
        """Give a line of JSON: what was sealed, or, where a key opened it, what it says."""
        if not self.unsealed:
            return self.entry.line

        return canonical({**self.entry.content, "hash": self.entry.hash})


class TrailReader:
    """Gives the entries of a trail; whether they are genuine is for `verify_trail` to say.

    Attributes:
        skipped: Lines so far that were no entries.
    """

    def __init__(self, lines: Iterable[Line], keys: SubjectKeys | None = None) -> None:
        """Take the lines.

        Args:
            lines: Such as a `Trail`.
            keys: What opens what is sealed of subjects; they are open.
        """
        self.skipped = 0
        self._lines = lines
        self._keys = keys

    def __iter__(self) -> Iterator[Opened]:
        """Read them.

        Raises:
            Exception: What reading the trail or the keys raised.
        """
        for line in self._lines:
            try:
                read = read_entry(line.text)
            except NoEntry:
                self.skipped += 1
                continue

            yield self._opened(read, line.text)

    def _opened(self, read: ReadEntry, text: bytes) -> Opened:
        body = read.body if self._keys is None else unseal_body(read.body, self._keys)
        content: dict[str, Any] = {
            "body": body,
            "chain": read.chain,
            "kind": read.kind,
            "previous": read.previous,
            "sequence": read.sequence,
            "time": read.time,
            "version": VERSION,
        }
        if read.key is not None:
            content["key"] = read.key

        entry = Entry(read.chain, read.sequence, read.kind, read.hash, text, content)
        return Opened(entry, body is not read.body)
