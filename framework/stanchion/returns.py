"""What a function's return annotation says: structured or not, and the output schema."""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Never, NoReturn, Union, cast, get_args, get_origin

from pydantic import ConfigDict, TypeAdapter
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

from .content import OFFICIAL_BLOCK_TYPES, Block, is_official_result
from .errors import InvalidTool
from .jsonvalue import JsonSchema
from .results import Result
from .schema import SchemaWriter

PLAIN = (
    inspect.Parameter.empty,
    Any,
    object,
    None,
    types.NoneType,
    Never,
    NoReturn,
    str,
    bytes,
    bytearray,
    memoryview,
)
"""Annotations that say nothing of a structure."""


def output_schema(tool: str, returns: Any) -> tuple[JsonSchema, TypeAdapter[Any], bool] | None:
    """Give the schema and the serialiser of what a tool returns, or None if it is unstructured.

    Text, bytes, content blocks, `ToolResult`, None and what has no annotation are unstructured.

    Returns:
        The schema, the serialiser, and whether the value is wrapped as `{"result": value}`
        because the protocol wants an object.

    Raises:
        InvalidTool: The type has no JSON form.
    """
    if is_unstructured(returns):
        return None

    try:
        adapter = _adapter(returns)
        schema = adapter.json_schema(mode="serialization", schema_generator=SchemaWriter)
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        shown = inspect.formatannotation(returns)
        raise InvalidTool(
            tool, f"its return type {shown} has no JSON form; return a model, or leave it out"
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


def _adapter(returns: Any) -> TypeAdapter[Any]:
    try:
        # NaN stays NaN, so that it is found; pydantic would make null of it within `Any`.
        return TypeAdapter[Any](returns, config=ConfigDict(ser_json_inf_nan="constants"))
    except PydanticUserError:  # the type, such as a model, has a configuration of its own
        return TypeAdapter[Any](returns)


def _inline_root(schema: JsonSchema) -> JsonSchema:
    """Replace a `$ref` at the root by what it refers to; MCP wants `type` at the root."""
    reference = schema.get("$ref", "")
    if not reference.startswith("#/$defs/"):
        return schema

    return {**schema["$defs"][reference.removeprefix("#/$defs/")], "$defs": schema["$defs"]}


def is_unstructured(returns: Any) -> bool:
    """Say whether what is annotated *returns* goes into content alone."""
    if any(returns is plain for plain in PLAIN):
        return True

    origin = get_origin(returns)
    if origin is Annotated:
        return is_unstructured(get_args(returns)[0])

    if origin in (Union, types.UnionType):
        arms = get_args(returns)
        return any(map(_is_content, arms)) or all(map(is_unstructured, arms))

    if origin in (list, tuple, Sequence):
        arms = [part for arm in get_args(returns) if arm is not ... for part in _arms(arm)]
        return any(map(_is_content, arms)) and all(map(is_unstructured, arms))

    return _is_content(returns)


def _arms(annotation: Any) -> Sequence[Any]:
    if get_origin(annotation) is Annotated:
        return _arms(get_args(annotation)[0])

    if get_origin(annotation) in (Union, types.UnionType):
        return [part for arm in get_args(annotation) for part in _arms(arm)]

    return (annotation,)


def _is_content(annotation: Any) -> bool:
    """Say whether *annotation* is a class of content blocks or of whole results."""
    if not isinstance(annotation, type):
        return False

    if issubclass(annotation, Block | Result) or is_official_result(annotation):
        return True

    fields: Mapping[str, Any] = getattr(cast("Any", annotation), "model_fields", {})
    return annotation.__module__.partition(".")[0] == "mcp_types" and (
        "type" in fields and fields["type"].default in OFFICIAL_BLOCK_TYPES
    )
