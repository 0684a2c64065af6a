"""Python values as JSON, strictly: what JSON has no form for is an error, never a guess."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, cast

import orjson
from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from .errors import Fault, InvalidResult
from .faults import escape_pointer, faults_in

MAX_REPORT_DEPTH = 250
"""Levels that a fault is looked for; beyond, Python's own stack would be the limit."""

_PLAIN = frozenset({bool, int, str})
"""Types that are JSON as they stand; a float may be NaN, and a subclass may be an enum."""


def to_json_value(value: Any, adapter: TypeAdapter[Any] | None = None) -> Any:
    """Turn *value* into dicts, lists, strings, numbers, booleans and None.

    Args:
        value: Anything pydantic can serialise: models, dataclasses, dates, enums, UUIDs, …
        adapter: The declared type of *value*, which it must then have; None to go by what it is.

    Raises:
        InvalidResult: A part of *value* has no JSON form, or is not of the declared type. The
            error names the type of what failed and nothing of its value.
    """
    try:
        if adapter is None:
            # NaN stays NaN here, so that `json_text` finds it; pydantic would make null of it.
            return to_jsonable_python(value, inf_nan_mode="constants", fallback=_refuse)

        # The serialiser alone lets through None, a missing member, and a number out of bounds.
        # The adapter's own methods cost more than the work they pass on.
        checked = adapter.validator.validate_python(value, strict=True)
        if type(checked) in _PLAIN:
            return checked

        return adapter.serializer.to_python(checked, mode="json", by_alias=True, warnings="error")
    except ValidationError as error:
        raise InvalidResult(faults_in(error, value)) from error
    except (PydanticSerializationError, ValueError, TypeError, RecursionError) as error:
        problem = (
            f"a value of type {type(value).__name__} does not serialise as its declared type"
            if adapter is not None
            else f"a value of type {type(value).__name__} has a part that JSON has no form for"
        )
        raise InvalidResult([Fault("", problem)]) from error


def _refuse(part: Any) -> Any:
    raise InvalidResult([Fault("", f"a part of type {type(part).__name__} has no JSON form")])


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
