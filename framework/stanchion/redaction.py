"""Redaction: a copy of a JSON value without its secrets, for logs, audit and traces.

What counts as a secret is decided by key and by pattern, in that order, wherever it stands:
in dicts, lists, tuples and JSON inside strings. It errs towards hiding too much.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from .errors import ConfigurationError
from .sensitive import (
    CARD,
    DIGIT_RUN,
    PATTERNS,
    PLAIN_KEYS,
    REDACTED,
    SECRET_ENDINGS,
    SECRET_KEYS,
    SECRET_PARTS,
)

LEFT_OUT = "[the rest is left out]"

_NOT_IN_KEY = r"[^a-z0-9]+"


class Redactor:
    """Makes redacted copies; never changes what it is given.

    Does not find a secret that neither its key nor its form tells.
    """

    def __init__(
        self,
        *,
        keys: Iterable[str] = (),
        patterns: Iterable[str | re.Pattern[str]] = (),
        max_depth: int = 32,
        max_characters: int = 4096,
        max_items: int = 10_000,
    ) -> None:
        """Describe what to redact beside what is always redacted.

        Args:
            keys: Further keys whose values are secret, as whole keys; case, dashes and
                underscores do not matter.
            patterns: Further regular expressions; what they match in a string is secret.
            max_depth: Levels of nesting that the copy has, 1 or more; deeper parts are left out.
            max_characters: Characters that each string of the copy has, 1 or more.
            max_items: Members and elements that the whole copy has, 1 or more; the rest is left
                out, with a mark.

        Raises:
            ConfigurationError: A number is out of range, or a pattern or key is none.
        """
        if max_depth < 1 or max_characters < 1 or max_items < 1:
            raise ConfigurationError(
                "Redactor: max_depth, max_characters and max_items must be 1 or more"
            )

        self._keys = SECRET_KEYS | {_checked_key(key) for key in keys}
        self._patterns = [
            *((_compiled(pattern), REDACTED) for pattern in patterns),
            *((re.compile(pattern), mark) for pattern, mark in PATTERNS),
        ]
        self._max_depth = max_depth
        self._max_characters = max_characters
        self._max_items = max_items

    def redact(self, value: Any) -> Any:
        """Give a redacted copy of a JSON *value*.

        Dicts, lists and tuples are copied, bytes become their number, and what is no JSON
        value becomes the name of its type.
        """
        return _Copy(self, self._max_items).of(value, self._max_depth)

    def redact_text(self, text: str) -> str:
        """Give *text* without its secrets, cut to the bound on characters."""
        return cast("str", self.redact(text))

    def hides(self, key: str) -> bool:
        """Say whether what stands under *key* is a secret."""
        plain = _plain_key(key[:256])
        if plain in self._keys:
            return True

        if plain in PLAIN_KEYS:
            return False

        return plain.endswith(SECRET_ENDINGS) or any(part in plain for part in SECRET_PARTS)

    def without_patterns(self, text: str) -> str:
        """Give *text* without what the patterns match, and cut; JSON in it is not read."""
        # Twice the bound is searched, so that a secret across the cut is seen whole.
        clean = text[: 2 * self._max_characters]
        for pattern, mark in self._patterns:
            clean = pattern.sub(mark, clean)

        return self.cut(re.sub(DIGIT_RUN, _without_cards, clean), len(text))

    def cut(self, text: str, original: int) -> str:
        """Give *text*, cut if it or the *original* number of characters is over the bound."""
        if max(len(text), original) <= self._max_characters:
            return text

        return f"{text[: self._max_characters]}… [cut: {original} characters]"


class _Copy:
    """One redacted copy in the making, and how many items it may still take."""

    __slots__ = ("left", "redactor")

    def __init__(self, redactor: Redactor, max_items: int) -> None:
        self.redactor = redactor
        self.left = max_items

    def of(self, value: Any, depth: int) -> Any:
        if value is None or isinstance(value, bool | float):
            return value

        if isinstance(value, str):
            return self.of_text(value, depth)

        if isinstance(value, int):
            # Only what has the length of a card number: longer integers are dear to write.
            return REDACTED if 10**12 <= value < 10**19 and _is_card(str(value)) else value

        if isinstance(value, bytes | bytearray):
            return f"[{len(value)} bytes]"

        if not isinstance(value, Mapping | list | tuple | set | frozenset):
            return f"[{type(value).__name__}]"

        if depth == 0:
            return "[deeper than is shown]"

        if isinstance(value, Mapping):
            return self.of_members(cast("Mapping[Any, Any]", value), depth - 1)

        items = self.of_items(cast("Iterable[Any]", value), depth - 1)
        return tuple(items) if isinstance(value, tuple) else items

    def of_items(self, items: Iterable[Any], depth: int) -> list[Any]:
        copy: list[Any] = []
        for item in items:
            if not self.take():
                copy.append(LEFT_OUT)
                break

            copy.append(self.of(item, depth))

        return copy

    def of_members(self, members: Mapping[Any, Any], depth: int) -> dict[Any, Any]:
        copy: dict[Any, Any] = {}
        for key, value in members.items():
            if not self.take():
                copy[LEFT_OUT] = None
                break

            if not isinstance(key, str):
                copy[self.of(key, 0)] = self.of(value, depth)
            elif value is not None and self.redactor.hides(key):
                copy[self.redactor.without_patterns(key)] = REDACTED
            else:
                copy[self.redactor.without_patterns(key)] = self.of(value, depth)

        return copy

    def of_text(self, text: str, depth: int) -> str:
        if depth > 0 and text.lstrip()[:1] in ("{", "[", '"'):
            try:
                # Not orjson, which refuses the NaN and the lone surrogates that others write.
                inner = json.loads(text)
            except (ValueError, RecursionError):
                return self.redactor.without_patterns(text)

            copy = self.of(inner, depth - 1)
            clean = text if copy == inner else json.dumps(copy)
            return self.redactor.cut(clean, len(text))

        return self.redactor.without_patterns(text)

    def take(self) -> bool:
        self.left -= 1
        return self.left >= 0


def _plain_key(key: str) -> str:
    return re.sub(_NOT_IN_KEY, "", key.casefold())


def _checked_key(key: str) -> str:
    plain = _plain_key(key)
    if not plain:
        raise ConfigurationError(f"Redactor(keys=...): {key!r} has no letter or digit of ASCII")

    return plain


def _compiled(pattern: str | re.Pattern[str]) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ConfigurationError(
            f"Redactor(patterns=...): {pattern!r} is no regular expression: {error}"
        ) from error


def _without_cards(run: re.Match[str]) -> str:
    """Replace each card number in a run of digits that blanks and dashes may divide."""
    text = run[0]
    groups = [(group.start(), group.end()) for group in re.finditer(r"\d+", text)]
    kept, done, first = "", 0, 0
    while first < len(groups):
        start = groups[first][0]
        for last in reversed(range(first, min(first + 19, len(groups)))):
            end = groups[last][1]
            if _is_card(re.sub(_NOT_IN_KEY, "", text[start:end])):
                kept += text[done:start] + REDACTED
                done, first = end, last
                break

        first += 1

    return kept + text[done:]


def _is_card(digits: str) -> bool:
    """Say whether *digits* may be a card number: its first digits, length and check digit.

    Source: ISO/IEC 7812-1, the Luhn formula of annex B; 13 to 19 digits.
    """
    if re.fullmatch(CARD, digits) is None:
        return False

    doubled = sum(sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (doubled + sum(map(int, digits[-1::-2]))) % 10 == 0
