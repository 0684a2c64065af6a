"""What is kept of arguments and results: copies that canonical JSON has a form for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from .canonical import MAX_EXACT

MAX_DEPTH: Final = 64


def as_json(value: Any, depth: int = MAX_DEPTH) -> Any:
    """Give a copy of *value* that canonical JSON has a form for.

    Numbers that are no doubles become text; what is no JSON value becomes the name of its type.
    """
    if value is None or isinstance(value, bool):
        return value

    if isinstance(value, str):
        return value if value.isascii() else value.encode(errors="replace").decode()

    if isinstance(value, int):
        return int(value) if abs(value) <= MAX_EXACT else _digits(value)

    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)

    if depth == 0 or not isinstance(value, Mapping | list | tuple):
        return f"[{type(value).__name__}]"

    if isinstance(value, Mapping):
        members = cast("Mapping[Any, Any]", value).items()
        return {str(as_json(str(name))): as_json(each, depth - 1) for name, each in members}

    return [as_json(each, depth - 1) for each in cast("Sequence[Any]", value)]


def _digits(number: int) -> str:
    """Write an integer that may have more digits than Python is willing to write."""
    return str(number) if number.bit_length() < 4096 else f"[integer of {number.bit_length()} bits]"
