"""Patterns: names in which `*` stands for any characters."""

from __future__ import annotations

from functools import lru_cache

STAR = "*"


def wild(text: str, pattern: str) -> bool:
    """Say whether *text* fits *pattern*, in which `*` is any characters and nothing else is more.

    Takes time in proportion to the two lengths, whatever the text is: no expression backtracks.
    """
    head, *rest = _parts(pattern)
    if not rest:
        return text == head

    *middle, tail = rest
    if len(text) < len(head) + len(tail) or not (text.startswith(head) and text.endswith(tail)):
        return False

    place, end = len(head), len(text) - len(tail)
    for part in middle:
        found = text.find(part, place, end)
        if found < 0:
            return False

        place = found + len(part)

    return True


def literal_head(pattern: str) -> str | None:
    """Give what stands before the first `*` of *pattern*, or None if there is no `*`."""
    head, star, _ = pattern.partition(STAR)
    return head if star else None


def longest_literal(pattern: str) -> str:
    """Give the longest run of characters of *pattern* without a `*`; whatever fits contains it."""
    return max(_parts(pattern), key=len)


@lru_cache(maxsize=65536)
def _parts(pattern: str) -> tuple[str, ...]:
    return tuple(pattern.split(STAR))
