"""What is kept of arguments and results: copies in plain JSON, with what a tool hides left out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from stanchion import Target, ToolResult

from .canonical import MAX_EXACT

REDACTED: Final = "[redacted]"

MAX_DEPTH: Final = 64


def hidden(value: Any, target: Target | None) -> Any:
    """Give a copy of *value* without what the target's policy `redact` names.

    A name hides whatever stands under that key, at any depth; a JSON pointer (RFC 6901) hides one
    place, in which `*` stands for any name or index.
    """
    rules: Iterable[str] = () if target is None else target.policies.get("redact", ())
    if not rules:
        return value

    keys = frozenset(rule for rule in rules if not rule.startswith("/"))
    pointers = [_steps(rule) for rule in rules if rule.startswith("/")]
    return _without(value, keys, pointers, MAX_DEPTH)


def _steps(pointer: str) -> list[str]:
    return [each.replace("~1", "/").replace("~0", "~") for each in pointer[1:].split("/")]


def _without(value: Any, keys: frozenset[str], pointers: Sequence[list[str]], depth: int) -> Any:
    if isinstance(value, Mapping):
        members: Iterable[tuple[Any, Any]] = cast("Mapping[Any, Any]", value).items()
    elif isinstance(value, list | tuple):
        members = enumerate(cast("Sequence[Any]", value))
    else:
        return value

    if depth == 0:
        return REDACTED  # what cannot be looked into is not shown

    copy: dict[Any, Any] = {}
    for name, inner in members:
        below = [steps[1:] for steps in pointers if steps[0] in ("*", str(name))]
        if name in keys or any(not steps for steps in below):
            copy[name] = REDACTED
        else:
            copy[name] = _without(inner, keys, below, depth - 1)

    return copy if isinstance(value, Mapping) else list(copy.values())


def captured_result(result: ToolResult) -> dict[str, Any]:
    """Give what is shown of a tool's result: its texts, the kinds of its blocks, and its value."""
    blocks: list[Any] = []
    for block in result.content:
        text = getattr(block, "text", None)
        blocks.append(text if isinstance(text, str) else f"[{type(block).__name__}]")

    shown: dict[str, Any] = {"content": blocks}
    if result.structured is not None:
        shown["structured"] = result.structured

    return shown


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
