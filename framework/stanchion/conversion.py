"""From what a handler returns to a `ToolResult`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from pydantic import TypeAdapter

from .content import AnyBlock, EmbeddedResource, Text, is_block, is_official_result
from .errors import Fault, InvalidResult
from .jsonvalue import faults_of, json_text
from .results import InputRequired, ToolResult
from .serialise import to_json_value

BYTES_MIME_TYPE = "application/octet-stream"


def to_result(
    returned: Any, adapter: TypeAdapter[Any] | None = None, *, wrapped: bool = False
) -> ToolResult | InputRequired:
    """Turn what a handler returned into a result.

    Text becomes a text block and bytes an embedded resource; content blocks, one or a list,
    stand as they are; None is no content; everything else becomes JSON text. A declared type
    gives the structured result too, with its JSON as text.

    Args:
        returned: What the handler returned; a `ToolResult` passes, with structure made JSON, and
            so do the official `CallToolResult` and an `InputRequired`.
        adapter: The serialiser of the declared type, or None where the result is unstructured.
        wrapped: Whether the declared type is no object and stands as `{"result": value}`.

    Raises:
        InvalidResult: *returned* has no JSON form, or is not of the declared type.
    """
    if isinstance(returned, ToolResult):
        return _finish(returned)

    if isinstance(returned, InputRequired):
        return returned

    if adapter is not None:
        plain = to_json_value(returned, adapter)
        text = json_text(plain)
        return ToolResult((Text(text),), structured={"result": plain} if wrapped else plain)

    if is_official_result(type(returned)):
        return _finish(_read_official(returned))

    return ToolResult(_checked(_blocks(returned)))


def to_object_result(returned: Any) -> ToolResult | InputRequired:
    """Turn what a handler returned into the structured result that a schema by hand promises.

    Raises:
        InvalidResult: *returned* has no JSON form, or is no object.
    """
    if isinstance(returned, ToolResult | InputRequired) or is_official_result(type(returned)):
        return to_result(returned)

    plain = to_json_value(returned)
    if not isinstance(plain, dict):
        kind = type(returned).__name__
        problem = f"is of type {kind}, where the tool's output schema promises an object"
        raise InvalidResult([Fault("", problem)])

    return ToolResult((Text(json_text(plain)),), structured=plain)


def _read_official(result: Any) -> ToolResult:
    return ToolResult(
        result.content,
        structured=result.structured_content,
        is_error=bool(result.is_error),
        meta=result.meta,
    )


def _finish(result: ToolResult) -> ToolResult:
    _checked(result.content)
    if result.structured is None:
        return result

    plain = to_json_value(result.structured)
    text = json_text(plain)
    return result.replace(content=result.content or (Text(text),), structured=plain)


def _checked(blocks: Sequence[AnyBlock]) -> Sequence[AnyBlock]:
    """Find here what the wire would refuse, while the call's outcome is still open."""
    faults: list[Fault] = []
    for index, block in enumerate(blocks):
        pointer = f"/content/{index}"
        if isinstance(block, Text):
            text: Any = block.text
            if not isinstance(text, str):
                faults.append(Fault(f"{pointer}/text", f"is of type {type(text).__name__}"))
            elif not text.isascii():
                faults.extend(faults_of(text, f"{pointer}/text"))
        elif not is_block(block):
            faults.append(Fault(pointer, f"is of type {type(block).__name__}, no content block"))

    if faults:
        raise InvalidResult(faults)

    return blocks


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

    if isinstance(returned, bytes | bytearray | memoryview):
        return EmbeddedResource("result:", bytes(cast("bytes", returned)), BYTES_MIME_TYPE)

    return Text(json_text(to_json_value(returned)))
