"""An entry as it is read back from a line, before anybody has looked whether it is genuine."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

import orjson

from .canonical import MAX_EXACT, canonical
from .entry import VERSION, Kind

_MEMBERS: Final = frozenset(
    {"body", "chain", "hash", "kind", "previous", "sequence", "time", "version"}
)
_OPTIONAL: Final = frozenset({"key"})
_KINDS: Final = frozenset(Kind)
_HASH = re.compile("[0-9a-f]{64}")
_HASH_MEMBER_BYTES: Final = len(',"hash":""') + 64


class NoEntry(ValueError):
    """Raised for a line that is no entry; says why."""


class ReadEntry(NamedTuple):
    """An entry as a line states it; whether its hash is right is for `verify_trail` to say.

    Attributes:
        chain: The id of its chain.
        sequence: Its number in the chain.
        kind: What it tells of.
        hash: The hash that it states, in hexadecimal.
        previous: The hash of the entry before that it states.
        key: The id of the key that its hash is keyed with, or None.
        time: When it was sealed, as RFC 3339 has it.
        body: What it tells.
        sealed: The canonical form that the hash is taken of.
        canonical: Whether the line itself is canonical.
    """

    chain: str
    sequence: int
    kind: str
    hash: str
    previous: str
    key: str | None
    time: str
    body: Mapping[str, Any]
    sealed: bytes
    canonical: bool


def read_entry(line: bytes) -> ReadEntry:
    """Read an entry from its line, with or without the line break.

    Raises:
        NoEntry: It is none: no JSON, or not with the members of an entry of a version known here.
    """
    line = line.rstrip(b"\n")
    try:
        content: Any = orjson.loads(line)
    except orjson.JSONDecodeError:
        raise NoEntry("it is no JSON") from None

    if type(content) is not dict:
        raise NoEntry("it is no JSON object")

    members = cast("dict[str, Any]", content)
    problem = _problem(members)
    if problem is not None:
        raise NoEntry(problem)

    whole = _canonical(members, line)
    # The last, because a body may hold anything; behind the hash there are only short strings,
    # whose quotes would be escaped.
    place = whole.rindex(b',"hash":"')
    return ReadEntry(
        members["chain"],
        members["sequence"],
        members["kind"],
        members["hash"],
        members["previous"],
        members.get("key"),
        members["time"],
        members["body"],
        whole[:place] + whole[place + _HASH_MEMBER_BYTES :],
        whole == line,
    )


def _canonical(members: Mapping[str, Any], line: bytes) -> bytes:
    try:
        return canonical(members)
    except ValueError:
        pass  # most likely a double that is written as an integer, such as 1e16

    try:
        return canonical(json.loads(line, parse_int=_integer_or_double))
    except (ValueError, RecursionError) as error:
        raise NoEntry(f"it has no canonical form: {error}") from None


def _integer_or_double(text: str) -> int | float:
    # RFC 8785, section 3.2.2.3: every number is a double; beyond these, not each integer is one.
    value = int(text)
    return value if abs(value) <= MAX_EXACT else float(text)


def _problem(members: Mapping[str, Any]) -> str | None:
    wrong = (members.keys() ^ _MEMBERS) - _OPTIONAL
    if wrong:
        return f"it lacks, or has too many, members: {', '.join(sorted(wrong))[:200]}"

    if members["version"] != VERSION or type(members["version"]) is not int:
        return f"its version is not {VERSION}"

    for name in ("hash", "previous"):
        value = members[name]
        if type(value) is not str or _HASH.fullmatch(value) is None:
            return f"its {name} is no hash"

    sequence = members["sequence"]
    if type(sequence) is not int or sequence < 0:
        return "its sequence is no number from 0 on"

    if type(members["body"]) is not dict:
        return "its body is no object"

    texts = members["chain"], members["time"], members.get("key", "")
    if not all(type(text) is str for text in texts):
        return "its chain, time or key is no string"

    return None if _is_kind(members["kind"]) else "its kind is not known"


def _is_kind(kind: Any) -> bool:
    return type(kind) is str and kind in _KINDS
