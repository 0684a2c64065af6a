"""Words that others chose: kept to one short line, so that they cannot forge another."""

from __future__ import annotations

from typing import Final

MAX_NAME: Final = 128
"""Characters of a name the peer chose that are logged; a tool's name has no more."""


def short_name(name: object) -> str | None:
    """Give a name as one short printable line, or None where it is no string."""
    if not isinstance(name, str):
        return None

    if len(name) <= MAX_NAME and name.isprintable():
        return name

    return "".join(letter if letter.isprintable() else "?" for letter in name[:MAX_NAME])


def one_line(text: str) -> str:
    """Give *text* with every control character and line separator escaped.

    What is not printable by Unicode is: line breaks of every kind, the escape character that
    colours terminals, marks that turn the direction of writing, lone surrogates.
    """
    if text.isprintable():
        return text

    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )
