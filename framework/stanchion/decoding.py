"""Arguments that came as JSON strings where the schema wants no string."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import orjson

from .jsonvalue import JsonSchema

MAX_HOPS = 16
"""References that are followed from one declaration."""


def decode_strings(arguments: Mapping[str, Any], decodable: Iterable[str]) -> dict[str, Any] | None:
    """Decode those of *arguments* that are JSON strings and stand in *decodable*.

    Returns:
        The arguments with those decoded, or None where there is nothing to decode.
    """
    decoded: dict[str, Any] | None = None
    for name in decodable:
        value = arguments.get(name)
        if not isinstance(value, str):
            continue

        try:
            inner = orjson.loads(value)
        except orjson.JSONDecodeError:
            continue

        decoded = dict(arguments) if decoded is None else decoded
        decoded[name] = inner

    return decoded


def decodable_properties(schema: JsonSchema) -> tuple[str, ...]:
    """Name the properties whose declared type excludes a string."""
    definitions, properties = schema.get("$defs"), schema.get("properties")
    if not isinstance(properties, dict):
        return ()

    known = cast("JsonSchema", definitions) if isinstance(definitions, dict) else {}
    declarations = cast("JsonSchema", properties)
    return tuple(
        name for name, declared in declarations.items() if not _may_be_text(declared, known)
    )


def _may_be_text(declared: Any, definitions: JsonSchema, hops: int = 0) -> bool:
    if not isinstance(declared, dict) or hops > MAX_HOPS:
        return True

    declared = cast("JsonSchema", declared)
    reference = declared.get("$ref")
    if isinstance(reference, str):
        target = definitions.get(reference.removeprefix("#/$defs/"))
        return _may_be_text(target, definitions, hops + 1)

    for arms in (declared.get("anyOf"), declared.get("oneOf")):
        if isinstance(arms, list):
            return any(_may_be_text(arm, definitions, hops + 1) for arm in cast("list[Any]", arms))

    kinds = declared.get("type")
    if isinstance(kinds, str):
        return kinds == "string"

    # An enum or a schema without a type may well take a string.
    return not isinstance(kinds, list) or "string" in kinds
