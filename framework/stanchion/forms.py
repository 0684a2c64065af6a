"""Forms: the flat schemas that a client can show to its user.

Imported with the first form that is asked: pydantic is dear to import.

Source: MCP 2025-11-25, client/elicitation, "Requested Schema".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, cast

import orjson
from pydantic import BaseModel, ValidationError

from .errors import AskFailed, ConfigurationError, Fault
from .faults import faults_in
from .jsonvalue import JsonSchema, json_depth
from .schema import SchemaWriter

MAX_DEPTH = 2
"""How deep what is filled in is nested: an object of scalars and of lists of choices."""

MAX_FAULTS = 20
"""Faults of one form that are named; a list of choices can hold any number."""

SCALARS = frozenset({"string", "number", "integer", "boolean"})


class Form:
    """A form: what is shown, and how what was filled in is read.

    Attributes:
        schema: The `requestedSchema`.
    """

    def __init__(self, schema: JsonSchema, faults: Callable[[Any], list[Fault]]) -> None:
        self.schema = schema
        self._faults = faults

    def read(self, content: Any) -> Any:
        """Give what was filled in.

        Raises:
            AskFailed: It does not fit; the error names places and types, never values.
        """
        if not isinstance(content, dict):
            raise AskFailed("the form was accepted without content")

        filled = cast("dict[str, Any]", content)
        # Fields hold scalars and lists of them; nothing below is let down into what is deeper.
        if json_depth(filled, MAX_DEPTH) > MAX_DEPTH:
            raise AskFailed("the form's content is nested deeper than a form is")

        if faults := self._faults(filled):
            raise AskFailed(_words(faults))

        return filled


class ModelForm(Form):
    """A form made from a pydantic model; what was filled in is an instance of it."""

    def __init__(self, model: type[BaseModel]) -> None:
        super().__init__(_flat(_schema_of(model), model.__name__), lambda _: [])
        self._model = model

    def read(self, content: Any) -> BaseModel:
        """Give what was filled in as an instance of the model.

        Raises:
            AskFailed: It does not fit.
        """
        filled = super().read(content)
        try:
            return self._model.model_validate_json(orjson.dumps(filled), strict=True)
        except ValidationError as error:
            raise AskFailed(_words(faults_in(error, filled))) from error


def _words(faults: list[Fault]) -> str:
    named = [str(fault)[:200] for fault in faults[:MAX_FAULTS]]
    more = len(faults) - len(named)
    return "; ".join([*named, f"and {more} more"] if more else named)


def form_of(schema: type[Any] | Mapping[str, Any]) -> Form:
    """Make a form from a pydantic model or a JSON Schema.

    Raises:
        ConfigurationError: The schema is not flat, or holds what a form has no field for.
    """
    if isinstance(schema, Mapping):
        return _schema_form(orjson.dumps(dict(schema)))

    if isinstance(schema, type) and issubclass(schema, BaseModel):  # pyright: ignore[reportUnnecessaryIsInstance] # users
        return _model_form(schema)

    raise ConfigurationError(f"{schema!r} is no pydantic model and no JSON Schema")


@lru_cache(maxsize=256)
def _model_form(model: type[BaseModel]) -> ModelForm:
    return ModelForm(model)


@lru_cache(maxsize=256)
def _schema_form(encoded: bytes) -> Form:
    import jsonschema_rs  # dear to import

    schema = _flat(orjson.loads(encoded), "the schema")
    try:
        validator = jsonschema_rs.Draft202012Validator(schema)
    except jsonschema_rs.ValidationError as error:
        raise ConfigurationError(f"the schema is not valid: {error.message}") from error

    def faults(content: Any) -> list[Fault]:
        return [
            Fault("".join(f"/{step}" for step in error.instance_path), "does not fit the form")
            for error in validator.iter_errors(content)
        ]

    return Form(schema, faults)


def _schema_of(model: type[BaseModel]) -> JsonSchema:
    return model.model_json_schema(schema_generator=SchemaWriter)


def _flat(schema: JsonSchema, whose: str) -> JsonSchema:
    """Give *schema* with every reference and optional part resolved.

    Raises:
        ConfigurationError: A property is no field of a form.
    """
    if schema.get("type") != "object" or not isinstance(schema.get("properties"), dict):
        raise ConfigurationError(f'{whose}: a form is of "type": "object" and has properties')

    definitions: JsonSchema = schema.get("$defs", {})
    properties = {
        name: _field(field, definitions, f"{whose}: field {name!r}")
        for name, field in cast("dict[str, JsonSchema]", schema["properties"]).items()
    }
    flat: JsonSchema = {"type": "object", "properties": properties}
    return flat | {key: schema[key] for key in ("$schema", "required") if schema.get(key)}


def _field(field: JsonSchema, definitions: JsonSchema, where: str) -> JsonSchema:
    field = _resolved(field, definitions)
    if arms := field.get("anyOf"):
        kept = [arm for arm in arms if arm.get("type") != "null"]
        if len(kept) == 1:  # an optional field: a form leaves it out
            outer = {key: field[key] for key in field if key not in ("anyOf", "default")}
            default = {"default": field["default"]} if field.get("default") is not None else {}
            field = {**_resolved(kept[0], definitions), **outer, **default}

    if "const" in field and isinstance(field["const"], str):
        field = {key: field[key] for key in field if key != "const"} | {"enum": [field["const"]]}

    if field.get("type") == "array" and isinstance(field.get("items"), dict):
        items = _resolved(field["items"], definitions)
        if "enum" in items or "anyOf" in items:
            return {key: value for key, value in field.items() if key != "uniqueItems"} | {
                "items": items
            }
    elif field.get("type") in SCALARS:
        return field

    raise ConfigurationError(
        f"{where} is no field of a form; it may be a string, a number, a boolean, a choice, or a "
        "list of choices"
    )


def _resolved(field: JsonSchema, definitions: JsonSchema) -> JsonSchema:
    name = field.get("$ref", "").removeprefix("#/$defs/")
    if name not in definitions:
        return field

    outer = {key: value for key, value in field.items() if key != "$ref"}
    inner = {key: value for key, value in definitions[name].items() if key != "title"}
    return {**inner, **outer}
