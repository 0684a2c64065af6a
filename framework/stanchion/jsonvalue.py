"""JSON values, strictly: what JSON has no form for is an error, never a guess."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeAlias, cast

import orjson

from .errors import Fault, InvalidResult
from .faults import escape_pointer

JsonSchema: TypeAlias = dict[str, Any]
"""A JSON Schema as a JSON value."""

MAX_REPORT_DEPTH = 250
"""Levels that a fault is looked for; beyond, Python's own stack would be the limit."""


def json_text(value: Any) -> str:
    """Write a JSON value as compact JSON text.

    Raises:
        InvalidResult: The value holds NaN, an infinity, an integer beyond 64 bits, a string that
            is not Unicode text, or is nested too deep.
    """
    try:
        text = orjson.dumps(value)
    except TypeError as error:
        raise InvalidResult(list(faults_of(value)) or [Fault("", "no JSON value")]) from error

    # orjson makes null of NaN, and null may also be None, or stand inside a string.
    if b"null" in text and _may_hold_nan(value) and (faults := list(faults_of(value))):
        raise InvalidResult(faults)

    return text.decode()


def _may_hold_nan(value: Any) -> bool:
    from pydantic_core import to_json  # not needed by whoever only imports this

    text = to_json(value, inf_nan_mode="constants")
    return b"NaN" in text or b"Infinity" in text


def faults_of(value: Any, pointer: str = "", depth: int = 0) -> Iterator[Fault]:
    """Name each part of *value* that cannot be sent as JSON; slow, for when sending failed."""
    if depth > MAX_REPORT_DEPTH:
        yield Fault(pointer, f"is nested deeper than {MAX_REPORT_DEPTH} levels")
    elif isinstance(value, dict):
        for key, inner in cast("dict[Any, Any]", value).items():
            if not isinstance(key, str):
                yield Fault(pointer, f"has a key of type {type(key).__name__}; keys are strings")
                continue

            place = f"{pointer}/{escape_pointer(key)}"
            if not _is_text(key):
                yield Fault(place, "has a name with a lone surrogate, which is no text")

            yield from faults_of(inner, place, depth + 1)
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(cast("list[Any]", value)):
            yield from faults_of(inner, f"{pointer}/{index}", depth + 1)
    elif problem := _scalar_problem(value):
        yield Fault(pointer, problem)


def _scalar_problem(value: Any) -> str | None:
    if value is None or isinstance(value, bool):
        return None

    if isinstance(value, float):
        finite = math.isfinite(value)
        return None if finite else "is a number that is not finite, which JSON has no form for"

    if isinstance(value, int):
        return None if -(2**63) <= value < 2**64 else "is an integer beyond 64 bits"

    if isinstance(value, str):
        return None if _is_text(value) else "is a string with a lone surrogate, which is no text"

    return f"is of type {type(value).__name__}, which JSON has no form for"


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False

    return True


def json_size(value: Any) -> int:
    """Give the size in bytes of *value* as compact JSON.

    Raises:
        TypeError: *value* is no JSON value.
    """
    return len(orjson.dumps(value))


def json_depth(value: Any, limit: int) -> int:
    """Give how deep *value* is nested, or *limit* + 1 as soon as it is deeper than *limit*.

    A scalar has depth 0. Does not recurse, so that no depth can exhaust the stack.
    """
    depth = 0
    level = [value]
    while level and depth <= limit:
        inner: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                inner.extend(cast("dict[str, Any]", node).values())
            elif isinstance(node, list):
                inner.extend(cast("list[Any]", node))

        if not any(isinstance(node, dict | list) for node in level):
            break

        depth += 1
        level = inner

    return depth
