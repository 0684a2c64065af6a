"""The guard before paths: what a variable of a URI may not be, if it may become part of one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

_ESCAPE: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_DRIVE: Final = re.compile(r"[A-Za-z]:(?:/|\Z)")


def is_safe(value: str | Iterable[str]) -> bool:
    """Say whether *value* may be part of a path and stays below where it is put.

    Not safe are: a segment `.` or `..`, a slash at the start, a backslash, a drive such as `C:/`,
    a control character such as NUL, and what could be decoded once more (`%2e`).
    """
    if not isinstance(value, str):
        return all(map(is_safe, value))

    if value.startswith("/") or "\\" in value or _DRIVE.match(value) or _ESCAPE.search(value):
        return False

    if any(letter < " " or letter == "\x7f" for letter in value):
        return False

    return not any(segment in (".", "..") for segment in value.split("/"))


def first_unsafe(variables: Mapping[str, str | list[str]], unguarded: Iterable[str]) -> str | None:
    """Name the first variable that is not safe and that is not in *unguarded*, or None."""
    for name, value in variables.items():
        if name not in unguarded and not is_safe(value):
            return name

    return None
