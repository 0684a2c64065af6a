"""Places: JSON pointers to what is secret, with `*` for any member or element.

Source: RFC 6901; the `*` is ours. A member that is really called `*` is any member too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from ..errors import ConfigurationError
from .strategy import Strategy

ANY: Final = "*"


class Place:
    """A place in a value, and the secret ones below it.

    Attributes:
        strategy: How what stands here is hidden, or None where it is not.
        below: `{member or index: place}`; under `*` the place of any.
    """

    __slots__ = ("below", "strategy")

    def __init__(self) -> None:
        self.strategy: Strategy | None = None
        self.below: dict[str, Place] = {}


Places: TypeAlias = tuple[Place, ...]
"""Where a value stands by every rule at once; empty where no rule leads to it or below."""


def places_of(pointers: Mapping[str, Strategy]) -> Places:
    """Give where a whole value stands.

    Raises:
        ConfigurationError: A pointer is none.
    """
    if not pointers:
        return ()

    root = Place()
    for pointer, strategy in pointers.items():
        place = root
        for token in tokens_of(pointer):
            place = place.below.setdefault(token, Place())

        place.strategy = strategy

    return (root,)


def tokens_of(pointer: str) -> list[str]:
    """Give the members and indexes that *pointer* leads through.

    Raises:
        ConfigurationError: It is no JSON pointer, or one to the whole.
    """
    if not pointer.startswith("/") or re.search(r"~(?![01])", pointer):
        raise ConfigurationError(
            f"Redactor: {pointer!r} is no JSON pointer such as /customer/email (RFC 6901; "
            "a ~ in a name is written ~0, a / in it ~1)"
        )

    return [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]


def below(places: Places, token: str) -> Places:
    """Give where the member or element *token* of what stands at *places* stands."""
    return tuple(
        found
        for place in places
        for found in (place.below.get(token), place.below.get(ANY))
        if found is not None
    )


def strategy_at(places: Places) -> Strategy | None:
    """Give how what stands at *places* is hidden, or None where it is not."""
    for place in places:
        if place.strategy is not None:
            return place.strategy

    return None
