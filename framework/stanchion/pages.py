"""Pages of a list, with cursors that survive additions and removals.

A list is ordered by name, and a cursor holds the last name that its page showed. Nothing that
is added or removed elsewhere makes an entry appear twice or go missing, and two replicas that
serve the same list understand each other's cursors.
"""

from __future__ import annotations

import binascii
from bisect import bisect_right
from collections.abc import Sequence

from .errors import InvalidParams

MAX_CURSOR_LENGTH = 1024
"""Characters; the longest of ours holds a name of 128 characters and the name of its list."""

# RFC 4648, section 5: the alphabet that needs no escaping in a URL.
_TO_URL = str.maketrans("+/", "-_")
_FROM_URL = str.maketrans("-_", "+/")


def encode_cursor(kind: str, after: str) -> str:
    """Make the cursor of the page of list *kind* that starts after the entry *after*."""
    encoded = binascii.b2a_base64(f"{kind}\0{after}".encode(), newline=False).decode("ascii")
    return encoded.rstrip("=").translate(_TO_URL)


def decode_cursor(kind: str, cursor: str) -> str:
    """Read a cursor that `encode_cursor` made for the same list; gives the last name shown.

    Raises:
        InvalidParams: The cursor is not one of list *kind*.
    """
    try:
        if len(cursor) > MAX_CURSOR_LENGTH:
            raise ValueError(len(cursor))

        padded = cursor.translate(_FROM_URL) + "=" * (-len(cursor) % 4)
        raw = binascii.a2b_base64(padded, strict_mode=True)
        found, separator, after = raw.decode().partition("\0")
    except (binascii.Error, ValueError):
        found, separator, after = "", "", ""

    if not separator or found != kind:
        raise InvalidParams("Invalid cursor: use the nextCursor of the page before, unchanged")

    return after


def page_of(
    kind: str, names: Sequence[str], cursor: str | None, size: int
) -> tuple[Sequence[str], str | None]:
    """Cut the page that *cursor* names out of *names*, which are sorted.

    Returns:
        The names on the page, and the next page's cursor or None on the last.

    Raises:
        InvalidParams: The cursor is not one of list *kind*.
    """
    start = 0 if cursor is None else bisect_right(names, decode_cursor(kind, cursor))
    shown = names[start : start + size]
    more = start + size < len(names)
    return shown, encode_cursor(kind, shown[-1]) if more else None
