"""From a typed function to JSON Schemas, a parser of arguments and a converter of results."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Union, cast, get_args, get_origin

import orjson
from docstring_parser import DocstringStyle, ParseError, parse
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model
from pydantic.errors import (
    PydanticInvalidForJsonSchema,
    PydanticSchemaGenerationError,
    PydanticUserError,
)
from pydantic.json_schema import GenerateJsonSchema

from .call import Call
from .content import OFFICIAL_BLOCK_TYPES, Block
from .errors import Fault, InvalidArguments, InvalidTool
from .jsonvalue import escape_pointer
from .results import ToolResult

JsonSchema = dict[str, Any]


class _Schema(GenerateJsonSchema):
    """Pydantic's JSON Schema without the titles it makes up from field names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


class Signature:
    """What a function's signature says: its input schema, and how to bind arguments to it.

    Attributes:
        input_schema: The JSON Schema of the arguments.
        description: The docstring's text before its sections, or None.
        returns: The return annotation, `inspect.Parameter.empty` where there is none.
    """

    def __init__(
        self, name: str, function: Callable[..., Any], local_names: Mapping[str, Any] | None = None
    ) -> None:
        self._tool = name
        hints = _resolve_hints(name, function, local_names)
        parameters = list(inspect.signature(function).parameters.values())
        self._names: list[str] = []
        self._call_names: list[str] = []
        fields: dict[str, Any] = {}
        for parameter in parameters:
            self._check_kind(parameter)
            annotation = hints.get(parameter.name, Any)
            if isinstance(annotation, type) and issubclass(annotation, Call):
                self._call_names.append(parameter.name)
                continue

            default = ... if parameter.default is parameter.empty else parameter.default
            # Neutral field names: a parameter may be called `schema`, `copy` or `_private`.
            fields[f"p{len(self._names)}"] = (annotation, default)
            self._names.append(parameter.name)

        self._model = self._build_model(fields)
        self._validate = self._model.__pydantic_validator__.validate_json
        self.returns: Any = hints.get("return", inspect.Parameter.empty)
        documented, self.description = _read_docstring(function)
        self.input_schema = self._build_schema(documented)

    def bind(self, call: Call) -> dict[str, Any]:
        """Turn the call's arguments into the function's keyword arguments.

        Arguments are taken as JSON, strictly: `"5"` is no integer and `1` is no boolean.

        Raises:
            InvalidArguments: They do not fit the signature.
        """
        try:
            bound = self._validate(orjson.dumps(call.arguments), strict=True)
        except ValidationError as error:
            raise InvalidArguments(_faults(error, call.arguments)) from None

        arguments = dict(zip(self._names, bound.__dict__.values(), strict=True))
        for name in self._call_names:
            arguments[name] = call

        return arguments

    def _check_kind(self, parameter: inspect.Parameter) -> None:
        kinds = (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY)
        if parameter.kind in kinds:
            raise InvalidTool(
                self._tool,
                f"parameter {parameter.name!r} is {parameter.kind.description}; arguments come by "
                "name, so use named parameters, or add_tool() with a schema of your own",
            )

    def _build_model(self, fields: dict[str, Any]) -> type[BaseModel]:
        aliases = dict(zip(fields, self._names, strict=True))
        config = ConfigDict(
            extra="forbid", alias_generator=aliases.__getitem__, arbitrary_types_allowed=False
        )
        try:
            return create_model("Arguments", __config__=config, **fields)
        except (PydanticSchemaGenerationError, PydanticUserError, TypeError) as error:
            raise InvalidTool(
                self._tool, f"a parameter's type has no JSON form: {error}"
            ) from error

    def _build_schema(self, documented: Mapping[str, str]) -> JsonSchema:
        try:
            schema = self._model.model_json_schema(schema_generator=_Schema)
        except (PydanticInvalidForJsonSchema, PydanticUserError) as error:
            raise InvalidTool(
                self._tool, f"a parameter's type has no JSON Schema: {error}"
            ) from error

        schema.pop("title", None)
        properties: JsonSchema = schema.setdefault("properties", {})
        for name, text in documented.items():
            if name in properties:
                properties[name].setdefault("description", text)

        return schema


def output_schema(tool: str, returns: Any) -> tuple[JsonSchema, TypeAdapter[Any], bool] | None:
    """Give the schema and the serialiser of what a tool returns, or None if it is unstructured.

    Text, bytes, content blocks, `ToolResult`, None and what has no annotation are unstructured.

    Returns:
        The schema, the serialiser, and whether the value is wrapped as `{"result": value}`
        because the protocol wants an object.

    Raises:
        InvalidTool: The type has no JSON form.
    """
    if _is_unstructured(returns):
        return None

    try:
        adapter = TypeAdapter[Any](returns)
        schema = adapter.json_schema(mode="serialization", schema_generator=_Schema)
    except (
        PydanticSchemaGenerationError,
        PydanticInvalidForJsonSchema,
        PydanticUserError,
    ) as error:
        raise InvalidTool(
            tool, f"its return type {returns!r} has no JSON form; return a model, or leave it out"
        ) from error

    schema = _inline_root(schema)
    if schema.get("type") == "object":
        schema.pop("title", None)
        return schema, adapter, False

    definitions = schema.pop("$defs", None)
    wrapped: JsonSchema = {
        "type": "object",
        "properties": {"result": schema},
        "required": ["result"],
    }
    if definitions is not None:
        wrapped["$defs"] = definitions

    return wrapped, adapter, True


def _inline_root(schema: JsonSchema) -> JsonSchema:
    """Replace a `$ref` at the root by what it refers to; MCP wants `type` at the root."""
    reference = schema.get("$ref", "")
    if not reference.startswith("#/$defs/"):
        return schema

    return {**schema["$defs"][reference.removeprefix("#/$defs/")], "$defs": schema["$defs"]}


def _is_unstructured(returns: Any) -> bool:
    if returns in (inspect.Parameter.empty, Any, None, types.NoneType, str, bytes):
        return True

    origin = get_origin(returns)
    if origin is Annotated:
        return _is_unstructured(get_args(returns)[0])

    if origin in (Union, types.UnionType):
        arms = get_args(returns)
        return any(_is_result(arm) for arm in arms) or all(map(_is_unstructured, arms))

    if origin in (list, tuple, Sequence):
        arms = [arm for arm in get_args(returns) if arm is not ...]
        return bool(arms) and all(_is_block_type(arm) for arm in arms)

    return _is_result(returns) or _is_block_type(returns)


def _is_result(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, ToolResult)


def _is_block_type(annotation: Any) -> bool:
    if get_origin(annotation) in (Union, types.UnionType):
        return all(map(_is_block_type, get_args(annotation)))

    if not isinstance(annotation, type):
        return False

    if issubclass(annotation, Block):
        return True

    fields: Mapping[str, Any] = getattr(cast("Any", annotation), "model_fields", {})
    return annotation.__module__.partition(".")[0] == "mcp_types" and (
        "type" in fields and fields["type"].default in OFFICIAL_BLOCK_TYPES
    )


def _resolve_hints(
    tool: str, function: Callable[..., Any], local_names: Mapping[str, Any] | None
) -> dict[str, Any]:
    target = function if inspect.isroutine(function) else type(function).__call__
    try:
        return typing.get_type_hints(target, localns=dict(local_names or {}), include_extras=True)
    except NameError as error:
        raise InvalidTool(
            tool, f"the annotation {error.name!r} is not defined where the function is"
        ) from error


def _read_docstring(function: Callable[..., Any]) -> tuple[dict[str, str], str | None]:
    text = inspect.getdoc(function)
    if not text:
        return {}, None

    try:
        parsed = parse(text, DocstringStyle.GOOGLE)
    except ParseError:
        return {}, text

    documented = {
        parameter.arg_name: " ".join(parameter.description.split())
        for parameter in parsed.params
        if parameter.description
    }
    return documented, parsed.description or text


def _faults(error: ValidationError, arguments: Mapping[str, Any]) -> list[Fault]:
    return [
        Fault(_pointer(fault["loc"], arguments, fault["type"]), fault["msg"])
        for fault in error.errors(include_url=False, include_input=False, include_context=False)
    ]


def _pointer(loc: tuple[int | str, ...], arguments: Any, kind: str) -> str:
    """Turn pydantic's location into a JSON pointer, leaving out the names of union arms."""
    pointer = ""
    here: Any = arguments
    for position, step in enumerate(loc):
        last = position == len(loc) - 1
        if isinstance(here, dict) and step in here:
            here = cast("dict[Any, Any]", here)[step]
        elif isinstance(here, list) and isinstance(step, int):
            items = cast("list[Any]", here)
            here = items[step] if step < len(items) else None
        elif not (last and kind == "missing"):
            continue

        pointer += f"/{escape_pointer(str(step))}"

    return pointer
