"""Forms as older versions have them.

Versions before 2025-11-25 name the choices of a list in `enumNames`, beside `enum`; they have no
lists of choices, and a default for yes or no only.

Source: the schemas of MCP 2025-06-18 and 2025-11-25, `PrimitiveSchemaDefinition`.
"""

from __future__ import annotations

from typing import Any, cast

from .errors import Unavailable
from .jsonvalue import JsonSchema
from .protocol import FIELD_SINCE, at_least


def form_for(schema: JsonSchema, version: str) -> JsonSchema:
    """Give the `requestedSchema` of a peer of *version*; the same object where nothing differs.

    What is filled in is the same in each version, so it is read as the original says.

    Raises:
        Unavailable: *version* has no such field.
    """
    if all(at_least(version, since) for since in _SINCE.values()):
        return schema

    fields = cast("dict[str, JsonSchema]", schema["properties"])
    properties = {name: _field_for(name, field, version) for name, field in fields.items()}
    shaped = {**schema, "properties": properties}
    if not at_least(version, _SINCE["$schema"]):
        shaped.pop("$schema", None)

    return shaped


_SINCE = {
    name.removeprefix("form."): since
    for name, since in FIELD_SINCE.items()
    if name.startswith("form.")
}
"""The version in which a part of a form appeared."""


def _field_for(name: str, field: JsonSchema, version: str) -> JsonSchema:
    if field.get("type") == "array" and not at_least(version, _SINCE["array"]):
        raise Unavailable(
            f"the client speaks {version}, whose forms have no list of choices such as {name!r}",
            policy="asks",
        )

    shaped = field
    if "oneOf" in field and not at_least(version, _SINCE["oneOf"]):
        shaped = _named_choices(field)

    if field.get("type") != "boolean" and not at_least(version, _SINCE["default"]):
        shaped = {key: value for key, value in shaped.items() if key != "default"}

    return shaped


def _named_choices(field: JsonSchema) -> JsonSchema:
    choices: list[dict[str, Any]] = field["oneOf"]
    kept = {key: value for key, value in field.items() if key != "oneOf"}
    return {
        **kept,
        "enum": [choice["const"] for choice in choices],
        "enumNames": [choice.get("title", str(choice["const"])) for choice in choices],
    }
