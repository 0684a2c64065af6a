"""Conditions: what a rule asks of a call's arguments, as data and never as code."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast
from unicodedata import category

from stanchion import ConfigurationError

from .patterns import wild

MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison of a part of the arguments with a fixed value.

    Attributes:
        pointer: The part, as a JSON pointer (RFC 6901).
        operator: One of `eq ne lt le gt ge in like exists`.
        value: A JSON value; a list for `in`, a pattern with `*` for `like`, a boolean for
            `exists`.
    """

    pointer: str
    operator: str
    value: Any = field(compare=False)
    encoded: str = field(init=False, repr=False)  # tells 1 from true, and can be hashed

    def __post_init__(self) -> None:
        object.__setattr__(self, "encoded", json.dumps(self.value))

    def holds(self, arguments: Mapping[str, Any]) -> bool | None:
        """Say whether it holds, or None where the part is missing or of another type."""
        part = _part_of(self.pointer, arguments)
        if self.operator == "exists":
            return (part is not MISSING) is self.value

        if part is MISSING:
            return None

        if self.operator == "in":
            found = [_equal(part, each) for each in self.value]
            return None if found and all(each is None for each in found) else any(found)

        return OPERATORS[self.operator](part, self.value)

    def __str__(self) -> str:
        return f"{self.pointer} {self.operator} {self.encoded}"


def is_one_line(text: str) -> bool:
    """Say whether *text* can stand in a line of a file: no control characters, no line ends."""
    return not any(category(character) in {"Cc", "Cs", "Zl", "Zp"} for character in text)


def holds(conditions: Sequence[Condition], arguments: Mapping[str, Any]) -> bool | None:
    """Say whether all *conditions* hold: no if one does not, None if that cannot be told."""
    found = [condition.holds(arguments) for condition in conditions]
    if False in found:
        return False

    return None if None in found else True


def parse_conditions(text: str) -> tuple[Condition, ...]:
    """Read conditions such as `/amount le 100 and /region in ["EU", "UK"]`.

    Each is a JSON pointer, an operator and a JSON value. `lt`, `le`, `gt` and `ge` compare two
    numbers or two strings; `like` is a pattern with `*`. All must hold. A part that is missing
    or of another type than the value cannot be told: a permission then does not hold, and a
    denial does. `/note exists false` is true of what is missing.

    Arguments are compared as the caller sends them, before defaults are filled in and before
    text is converted; so a denial of a value needs one of its absence beside it where there is
    a default.

    Raises:
        ConfigurationError: It cannot be read.
    """
    found: list[Condition] = []
    rest = text.strip()
    while True:
        pointer, _, rest = rest.partition(" ")
        name, _, rest = rest.lstrip().partition(" ")
        rest = rest.lstrip()
        try:
            value, end = json.JSONDecoder(parse_constant=_refuse).raw_decode(rest)
        except (ValueError, RecursionError):
            raise _unreadable(text, f"{rest[:40]!r} is no JSON value") from None

        found.append(_checked(text, Condition(pointer, name, value)))
        rest = rest[end:]
        if not rest.strip():
            return tuple(found)

        if not rest.startswith(" and "):
            raise _unreadable(text, "conditions are joined by ` and `")

        rest = rest.removeprefix(" and ").lstrip()


def format_conditions(conditions: Sequence[Condition]) -> str:
    """Give the text that `parse_conditions` reads."""
    return " and ".join(map(str, conditions))


def _checked(text: str, condition: Condition) -> Condition:
    pointer, name, value = condition.pointer, condition.operator, condition.value
    if (
        not pointer.startswith("/")
        or not is_one_line(pointer)
        or "~" in pointer.replace("~0", "").replace("~1", "")
    ):
        raise _unreadable(text, f"{pointer!r} is no JSON pointer into the arguments")

    fits: Mapping[str, bool] = {
        "eq": True,
        "ne": True,
        "in": isinstance(value, list),
        "like": isinstance(value, str),
        "exists": isinstance(value, bool),
    } | dict.fromkeys(ORDERS, isinstance(value, int | float | str) and not isinstance(value, bool))
    if name not in fits:
        raise _unreadable(text, f"{name!r} is none of the operators {', '.join(fits)}")

    if not fits[name]:
        raise _unreadable(text, f"{value!r} cannot be compared by {name}")

    return condition


def _unreadable(text: str, problem: str) -> ConfigurationError:
    return ConfigurationError(f"condition {text!r}: {problem}")


def _refuse(constant: str) -> Any:
    raise ValueError(constant)  # NaN and infinity, which are no JSON


def _part_of(pointer: str, whole: Any) -> Any:
    part = whole
    for token in _tokens(pointer):
        if isinstance(part, Mapping):
            part = cast("Mapping[str, Any]", part).get(token, MISSING)
        elif isinstance(part, list) and token.isdecimal() and token.isascii():
            items = cast("list[Any]", part)
            part = items[int(token)] if len(token) < 10 and int(token) < len(items) else MISSING
        else:
            return MISSING

    return part


def _tokens(pointer: str) -> Iterator[str]:
    for token in pointer.split("/")[1:]:
        yield token.replace("~1", "/").replace("~0", "~")


def _kind(value: object) -> type:
    """Give what may be compared with what; a boolean is no number, and a float is one."""
    kind = type(value)
    return float if kind is int else kind


def _equal(one: Any, other: Any) -> bool | None:
    return _same(one, other) if _kind(one) is _kind(other) else None


def _same(one: Any, other: Any) -> bool:
    """Compare as JSON does, no deeper than the rule's own value is."""
    if _kind(one) is not _kind(other):
        return False

    if isinstance(other, list):
        items = cast("list[Any]", other)
        return len(one) == len(items) and all(map(_same, one, items))

    if isinstance(other, dict):
        members = cast("dict[str, Any]", other)
        return one.keys() == members.keys() and all(_same(one[key], members[key]) for key in one)

    return one == other


def _unequal(one: Any, other: Any) -> bool | None:
    equal = _equal(one, other)
    return None if equal is None else not equal


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool | None]:
    def compared(one: Any, other: Any) -> bool | None:
        return compare(one, other) if _kind(one) is _kind(other) else None

    return compared


def _like(text: Any, pattern: str) -> bool | None:
    return wild(text, pattern) if isinstance(text, str) else None


ORDERS: Final = ("lt", "le", "gt", "ge")

OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool | None]]] = {
    "eq": _equal,
    "ne": _unequal,
    "like": _like,
} | {name: _ordered(getattr(operator, name)) for name in ORDERS}
