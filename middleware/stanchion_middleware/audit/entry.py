"""An entry: one line of a trail, sealed to the line before.

An entry is a JSON object in canonical form. Its hash is SHA-256, or HMAC-SHA256 with a key, over
the hash of the entry before, as 32 bytes, and the canonical form of the entry without its hash:

    {"body": {…}, "chain": "…", "hash": "…", "kind": "call", "previous": "…", "sequence": 7,
     "time": "2026-07-28T09:30:00.000123Z", "version": 1}

So whoever changes, leaves out, adds or moves an entry would have to change every later one too,
and what vouches for those: signed heads in the trail, and heads that are kept elsewhere.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from .canonical import canonical

VERSION: Final = 1

GENESIS: Final = "0" * 64
"""What stands for the hash before the first entry of a chain."""


class Kind(StrEnum):
    """What an entry tells of."""

    OPENED = "opened"
    """A process began to write; the first of every chain, and again after each start."""
    CALL = "call"
    """A call ended; its body is an audit record."""
    INTERRUPTED = "interrupted"
    """A call had no record yet when its process died; found at the next start. Where the trail has
    one of the same correlation id all the same, the process died as it was written."""
    LOST = "lost"
    """Records that could not be kept: how many, and why."""
    HEAD = "head"
    """A signature over the hash of the entry before, and so over all up to it."""
    CLOSED = "closed"
    """The process stopped writing in good order."""


class Key(NamedTuple):
    """A secret that entries are sealed with, or low-entropy values digested.

    Attributes:
        id: What entries call it; not secret.
        secret: 32 bytes or more.
    """

    id: str
    secret: bytes


class Entry(NamedTuple):
    """A sealed entry.

    Attributes:
        chain: The id of its chain.
        sequence: Its number in the chain, from 0 on without a gap.
        kind: What it tells of.
        hash: Its hash in hexadecimal.
        line: The entry in canonical JSON, without a line break.
        content: The same as a dict, without the hash; not to be changed.
    """

    chain: str
    sequence: int
    kind: str
    hash: str
    line: bytes
    content: Mapping[str, Any]


class Tip(NamedTuple):
    """Where a chain ends, to go on from.

    Attributes:
        chain: The chain's id.
        sequence: The number of the last entry; -1 where there is none yet.
        hash: Its hash; `GENESIS` where there is none.
        torn: Bytes behind it that are no whole entry, as a process that died leaves them.
    """

    chain: str
    sequence: int = -1
    hash: str = GENESIS
    torn: int = 0


def seal(tip: Tip, kind: str, body: Mapping[str, Any], at: float, key: Key | None = None) -> Entry:
    """Make the entry that follows *tip*.

    Args:
        tip: The end of the chain.
        kind: What it tells of.
        body: That, as JSON values.
        at: The time of day in seconds since 1970.
        key: What the hash is keyed with, or None for a plain one.

    Raises:
        ValueError: *body* holds something that is no JSON value.
    """
    content: dict[str, Any] = {
        "body": body,
        "chain": tip.chain,
        "kind": kind,
        "previous": tip.hash,
        "sequence": tip.sequence + 1,
        "time": timestamp(at),
        "version": VERSION,
    }
    if key is not None:
        content["key"] = key.id

    encoded = canonical(content)
    digest = digest_of(tip.hash, encoded, key)
    # Where the hash belongs in the order of names: behind "chain", before "key" and "kind".
    place = encoded.index(b',"key":' if key is not None else b',"kind":', _end_of_body(encoded))
    line = b'%b,"hash":"%b"%b' % (encoded[:place], digest.encode(), encoded[place:])
    return Entry(tip.chain, tip.sequence + 1, kind, digest, line, content)


def digest_of(previous: str, encoded: bytes, key: Key | None = None) -> str:
    """Give the hash of an entry in hexadecimal.

    Args:
        previous: The hash of the entry before.
        encoded: The entry without its hash, in canonical form.
        key: What the hash is keyed with, or None.
    """
    linked = bytes.fromhex(previous) + encoded
    if key is None:
        return hashlib.sha256(linked).hexdigest()

    return hmac.digest(key.secret, linked, "sha256").hex()


def timestamp(at: float) -> str:
    """Give a time of day as RFC 3339 has it, in UTC and microseconds."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds")[:-6] + "Z"


def _end_of_body(encoded: bytes) -> int:
    # The members behind the body are ours and short, and a body may hold anything.
    return encoded.rindex(b',"chain":"')
