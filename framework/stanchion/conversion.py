"""From what a handler returns to a `ToolResult`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from pydantic import TypeAdapter

from .content import AnyBlock, EmbeddedResource, Text, is_block
from .jsonvalue import json_text, to_json_value
from .results import ToolResult

BYTES_MIME_TYPE = "application/octet-stream"


def to_result(
    returned: Any, adapter: TypeAdapter[Any] | None = None, *, wrapped: bool = False
) -> ToolResult:
    """Turn what a handler returned into a result.

    Text becomes a text block and bytes an embedded resource; content blocks, one or a list,
    stand as they are; None is no content; everything else becomes JSON text. A declared type
    gives the structured result too, with its JSON as text.

    Args:
        returned: What the handler returned; a `ToolResult` passes, with structure made JSON.
        adapter: The serialiser of the declared type, or None where the result is unstructured.
        wrapped: Whether the declared type is no object and stands as `{"result": value}`.

    Raises:
        InvalidResult: *returned* has no JSON form, or is not of the declared type.
    """
    if isinstance(returned, ToolResult):
        return _finish(returned)

    if adapter is not None:
        plain = to_json_value(returned, adapter)
        text = json_text(plain)
        return ToolResult((Text(text),), structured={"result": plain} if wrapped else plain)

    return ToolResult(_blocks(returned))


def _finish(result: ToolResult) -> ToolResult:
    if result.structured is None:
        return result

    plain = to_json_value(result.structured)
    text = json_text(plain)
    return result.replace(content=result.content or (Text(text),), structured=plain)


def _blocks(returned: Any) -> Sequence[AnyBlock]:
    if returned is None:
        return ()

    if isinstance(returned, list | tuple):
        items = cast("Sequence[Any]", returned)
        if any(map(is_block, items)):
            return [_block(item) for item in items]

    return (_block(returned),)


def _block(returned: Any) -> AnyBlock:
    if isinstance(returned, str):
        return Text(returned)

    if is_block(returned):
        return cast("AnyBlock", returned)

    if isinstance(returned, bytes | bytearray):
        return EmbeddedResource("result:", bytes(returned), BYTES_MIME_TYPE)

    return Text(json_text(to_json_value(returned)))
