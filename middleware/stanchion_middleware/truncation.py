"""Cutting what a tool gives to a limit in bytes, with a marker that names the original size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from stanchion import (
    AnyBlock,
    Block,
    Fault,
    InvalidArguments,
    InvalidResult,
    Outcome,
    Text,
    Tool,
    ToolError,
    ToolResult,
    json_size,
)

META_TRUNCATED: Final = "io.stanchion/truncated"
"""In the `_meta` of a result that was cut: `{"originalBytes": int}`. Not to be cached."""

MAX_BLOCKS: Final = 1024
"""Blocks of one result; without it, empty blocks would pass every limit in bytes."""


def cut_result(result: ToolResult, max_bytes: int, tool: Tool) -> ToolResult:
    """Give *result* as it is if it fits into *max_bytes*, or a cut copy that says so.

    Raises:
        InvalidResult: A part of it has no JSON form, so that it has no size.
    """
    try:
        structured = 0 if result.structured is None else json_size(result.structured)
        sizes = [_size(block) for block in result.content]
    except TypeError:
        raise InvalidResult([Fault("", "has a part that JSON has no form for")]) from None

    total = structured + sum(sizes)
    if total <= max_bytes and len(sizes) <= MAX_BLOCKS:
        return result

    meta = {**(result.meta or {}), META_TRUNCATED: {"originalBytes": total}}
    if structured <= max_bytes:
        content = _cut_content(result.content, sizes, max_bytes - structured)
        return result.replace(content=content, meta=meta)

    content = _cut_content(result.content, sizes, max_bytes)
    marker = f"… [cut: the structured result of {structured} bytes, over the limit of {max_bytes}]"
    if tool.output_schema is None or result.is_error:
        return result.replace(content=[Text(marker), *content], structured=None, meta=meta)

    marker += " An error, because the declared output schema cannot be met without it."
    return ToolResult(
        [Text(marker), *content], is_error=True, meta=meta, outcome=Outcome.TOOL_ERROR
    )


def _cut_content(
    content: Sequence[AnyBlock], sizes: Sequence[int], max_bytes: int
) -> list[AnyBlock]:
    """Keep what fits into *max_bytes*, in order, with a marker for each block that does not."""
    kept: list[AnyBlock] = []
    left = max_bytes
    for block, size in zip(content[:MAX_BLOCKS], sizes, strict=False):
        text = _text_of(block)
        if size <= left:
            kept.append(block)
            left -= size
        elif text is not None:
            kept.append(Text(cut_text(text, left)))
            left = 0
        else:
            kept.append(Text(f"… [cut: a block of type {_type_of(block)}, {size} bytes]"))

    if len(content) > MAX_BLOCKS:
        kept.append(Text(f"… [cut: {MAX_BLOCKS} of {len(content)} blocks]"))

    return kept


def cut_text(text: str, max_bytes: int) -> str:
    """Cut *text* to *max_bytes* of UTF-8, 0 or more, between two characters.

    Returns:
        The text where it fits; else what fits and a marker with both sizes, such as
        `… [cut: 65536 of 5242880 bytes]`.
    """
    size = _text_size(text)
    if size <= max_bytes:
        return text

    # A character has at least one byte, so that no more of them can fit. Surrogates pass: they
    # are the edge's to report.
    head = text[:max_bytes].encode("utf-8", "surrogatepass")
    end = min(max_bytes, len(head))
    while end < len(head) and head[end] & 0xC0 == 0x80:  # RFC 3629: a continuation byte
        end -= 1

    kept = head[:end].decode("utf-8", "surrogatepass")
    return f"{kept}… [cut: {end} of {size} bytes]"


def cut_error(error: BaseException, max_bytes: int) -> None:
    """Shorten in place what a peer would read of *error*, and leave its type and traceback."""
    match error:
        case BaseExceptionGroup():
            for inner in error.exceptions:
                cut_error(inner, max_bytes)

        case ToolError():
            error.message = cut_text(error.message, max_bytes)
            error.args = (error.message,)

        case InvalidArguments():
            error.faults = _cut_faults(error.faults, max_bytes)
            error.args = InvalidArguments(error.faults).args

        case InvalidResult():
            error.faults = _cut_faults(error.faults, max_bytes)
            error.args = InvalidResult(error.faults).args

        case _:
            pass


def _cut_faults(faults: Sequence[Fault], max_bytes: int) -> tuple[Fault, ...]:
    kept: list[Fault] = []
    left = max_bytes
    for fault in faults:
        size = _text_size(str(fault))
        if size > left:
            kept.append(Fault("", f"… [cut: {len(kept)} of {len(faults)} faults]"))
            break

        kept.append(fault)
        left -= size

    return tuple(kept)


def _size(block: AnyBlock) -> int:
    text = _text_of(block)
    if text is not None:
        return _text_size(text)

    if isinstance(block, Block):
        return json_size(block.wire())

    return json_size(block.model_dump(by_alias=True, exclude_none=True, mode="json"))


def _text_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _text_of(block: AnyBlock) -> str | None:
    """Give the text of a text block, ours or an official one, or None."""
    if isinstance(block, Block):
        return block.text if isinstance(block, Text) else None

    official: Any = block
    return official.text if official.type == "text" else None


def _type_of(block: AnyBlock) -> str:
    return block.wire()["type"] if isinstance(block, Block) else block.type
