"""Which log messages a client is sent: the eight levels, and the least severe one it wants."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

import orjson

from .protocol import LOG_LEVELS
from .wire import unicode_text

LogLevel: TypeAlias = Literal[
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"
]
"""A level of a log message, least severe first (RFC 5424, section 6.2.1)."""

DEFAULT_LOG_LEVEL: Final[LogLevel] = "info"
"""What a legacy client is sent before it says what it wants, which the specification leaves open.

Source: MCP 2025-11-25, server/utilities/logging, "Setting Log Level".
"""

MAX_TEXT_LENGTH: Final = 10_000
"""Characters sent of the text that stands for what JSON has no form for."""

_SEVERITY: Final[Mapping[str, int]] = MappingProxyType(
    {level: severity for severity, level in enumerate(LOG_LEVELS)}
)


class LogFloor:
    """The least severe level that a legacy client is sent; one for each stream or session.

    A transport whose sessions outlive their connections keeps the level where all requests of
    the session find it, by overriding both methods.
    """

    __slots__ = ("_level",)

    def __init__(self) -> None:
        self._level: str = DEFAULT_LOG_LEVEL

    def get(self) -> str:
        """Give the level, one of `LOG_LEVELS`."""
        return self._level

    def set(self, level: str) -> None:
        """Keep *level*, which is one of `LOG_LEVELS`; running calls heed it at once.

        Raises:
            CallError: In an override, where the level cannot be kept.
        """
        self._level = level


def is_log_level(level: str) -> bool:
    """Say whether *level* is one of the eight."""
    return level in _SEVERITY


def is_as_severe(level: str, floor: str) -> bool:
    """Say whether *level* is *floor* or more severe; both are in `LOG_LEVELS`."""
    return _SEVERITY[level] >= _SEVERITY[floor]


def encode_log_data(value: Any) -> orjson.Fragment:
    """Write *value* as JSON; what JSON has no form for is written as its text, cut to a bound.

    Never fails: a log message must not cost a call its answer.
    """
    try:
        return orjson.Fragment(orjson.dumps(value))
    except TypeError:
        return orjson.Fragment(orjson.dumps(unicode_text(_text_of(value)[:MAX_TEXT_LENGTH])))


def _text_of(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 # it is the value's own code, and may do anything
        return f"<{type(value).__name__}>"
