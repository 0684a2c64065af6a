"""Python values as JSON, strictly: what JSON has no form for is an error, never a guess."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any, cast

import orjson
from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError, to_json

from .errors import Fault, InvalidResult

MAX_REPORT_DEPTH = 250
"""Levels that a fault is looked for; beyond, Python's own stack would be the limit."""


def escape_pointer(token: str) -> str:
    """Escape one token of a JSON pointer (RFC 6901, section 3); always gives Unicode text."""
    return token.replace("~", "~0").replace("/", "~1").encode("utf-8", "replace").decode()


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
        return (adapter or _any_adapter()).dump_python(
            value, mode="json", by_alias=True, warnings="error"
        )
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        problem = (
            f"a value of type {type(value).__name__} does not serialise as its declared type"
            if adapter is not None
            else f"a value of type {type(value).__name__} has a part that JSON has no form for"
        )
        raise InvalidResult([Fault("", problem)]) from error


@cache
def _any_adapter() -> TypeAdapter[Any]:
    return TypeAdapter(Any)


def json_text(value: Any) -> str:
    """Write a JSON value as compact JSON text.

    Raises:
        InvalidResult: The value holds NaN, an infinity, or a string that is not Unicode text.
    """
    try:
        text = to_json(value, inf_nan_mode="constants")
    except (PydanticSerializationError, ValueError) as error:
        raise InvalidResult(list(faults_of(value)) or [Fault("", "no JSON value")]) from error

    # The words may also stand inside strings; only a look at the values tells.
    if (b"NaN" in text or b"Infinity" in text) and (faults := list(faults_of(value))):
        raise InvalidResult(faults)

    return text.decode()


def faults_of(value: Any, pointer: str = "", depth: int = 0) -> Iterator[Fault]:
    """Name each part of *value* that cannot be sent as JSON; slow, for when sending failed."""
    if depth > MAX_REPORT_DEPTH:
        yield Fault(pointer, f"is nested deeper than {MAX_REPORT_DEPTH} levels")
    elif isinstance(value, dict):
        for key, inner in cast("dict[Any, Any]", value).items():
            if isinstance(key, str):
                yield from faults_of(inner, f"{pointer}/{escape_pointer(key)}", depth + 1)
            else:
                yield Fault(pointer, f"has a key of type {type(key).__name__}; keys are strings")
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
