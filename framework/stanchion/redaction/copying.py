"""The walk: a redacted copy of one value, within bounds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from .numbers import is_card
from .places import Places, below, strategy_at
from .strategy import Strategy

if TYPE_CHECKING:
    from .redactor import Redactor

LEFT_OUT: Final = "[the rest is left out]"
TOO_DEEP: Final = "[deeper than is shown]"

# RFC 8259, section 2: what may stand before a value, and what of those worth reading begins.
_MAY_START_JSON: Final = frozenset('{[" \t\r\n')

# Made once: a union or tuple of types written where it is used is made anew for each value.
_PLAIN: Final = (bool, float)
_BYTES: Final = (bytes, bytearray)
_CONTAINERS: Final = (dict, list, tuple, set, frozenset, Mapping)


class Copy:
    """One redacted copy in the making.

    Attributes:
        left: How many items it may still take.
        hidden: What was hidden by key or place, or None where nobody asks.
    """

    __slots__ = ("_redactor", "hidden", "left")

    def __init__(self, redactor: Redactor, hidden: list[Any] | None = None) -> None:
        self._redactor = redactor
        self.left = redactor.max_items
        self.hidden = hidden

    def of(self, value: Any, depth: int, places: Places = ()) -> Any:
        """Give a redacted copy of *value*, which stands at *places*, *depth* levels deep."""
        if isinstance(value, str):
            if value[:1] in _MAY_START_JSON and depth > 0:
                return self._of_json(value, depth - 1, places)

            return self._redactor.without_forms(value)

        if value is None or isinstance(value, _PLAIN):
            return value

        if isinstance(value, int):
            # Only what has the length of a card number: longer integers are dear to write.
            if 10**12 <= value < 10**19 and is_card(str(value)):
                return self._redactor.mark_card(str(value))

            return value

        if isinstance(value, _BYTES):
            return f"[{len(value)} bytes]"

        if not isinstance(value, _CONTAINERS):
            return f"[{type(value).__name__}]"

        if depth == 0:
            return TOO_DEEP

        if isinstance(value, dict) or isinstance(value, Mapping):  # noqa: SIM101 # sooner known
            return self._of_members(cast("Mapping[Any, Any]", value), depth - 1, places)

        items = self._of_items(cast("Iterable[Any]", value), depth - 1, places)
        return tuple(items) if isinstance(value, tuple) else items

    def _of_items(self, items: Iterable[Any], depth: int, places: Places) -> list[Any]:
        copy: list[Any] = []
        for index, item in enumerate(items):
            self.left -= 1
            if self.left < 0:
                copy.append(LEFT_OUT)
                break

            here = below(places, str(index)) if places else ()
            strategy = strategy_at(here) if here else None
            copy.append(self._hide(item, strategy) if strategy else self.of(item, depth, here))

        return copy

    def _of_members(self, members: Mapping[Any, Any], depth: int, places: Places) -> dict[Any, Any]:
        copy: dict[Any, Any] = {}
        known, known_key = self._redactor.known_keys, self._redactor.known_key
        for key, value in members.items():
            self.left -= 1
            if self.left < 0:
                copy[LEFT_OUT] = None
                break

            if isinstance(key, str):
                strategy, name = known.get(key) or known_key(key)
            else:
                strategy, name = None, self.of(key, 0)

            here: Places = ()
            if places:
                here = below(places, key if isinstance(key, str) else str(name))
                strategy = strategy_at(here) or strategy

            if strategy is None:
                copy[name] = self.of(value, depth, here)
            else:
                copy[name] = self._hide(value, strategy)

        return copy

    def _hide(self, value: Any, strategy: Strategy) -> str | None:
        if self.hidden is not None:
            self.hidden.append(value)

        return None if value is None else self._redactor.marks.of(value, strategy)

    def _of_json(self, text: str, depth: int, places: Places) -> str:
        inner = _json_in(text)
        if inner is None:
            return self._redactor.without_forms(text)

        copy = self.of(inner, depth, places)
        return self._redactor.cut(text if copy == inner else json.dumps(copy), len(text))


def _json_in(text: str) -> Any:
    """Give the object, array or string that *text* is, or None."""
    if text.lstrip()[:1] not in ("{", "[", '"'):
        return None

    try:
        # Not orjson, which refuses the NaN and the lone surrogates that others write.
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def words_in(values: Iterable[Any], at_most: int) -> set[str]:
    """Give the strings and numbers in *values* as they would stand in a sentence."""
    words: set[str] = set()
    waiting = list(values)
    while waiting and len(words) < at_most:
        value = waiting.pop()
        if isinstance(value, str):
            words.add(value)
        elif isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**30:
            words.add(str(value))
        elif isinstance(value, Mapping):
            waiting.extend(list(cast("Mapping[Any, Any]", value).values())[:at_most])
        elif isinstance(value, list | tuple):
            waiting.extend(cast("list[Any]", value)[:at_most])

    return words
