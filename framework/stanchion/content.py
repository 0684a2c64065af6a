"""Content blocks: what a result shows to a model.

Light classes of our own, because the official models cost a quarter of a second to import and
several microseconds each to dump; the official `mcp_types` blocks are welcome wherever a block
is, and are turned into JSON at the wire like these.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

from .protocol import FIELD_SINCE, at_least


class Block:
    """The root of our content blocks; a subclass says its own JSON form in `wire`."""

    __slots__ = ("annotations", "meta")

    def __init__(
        self,
        annotations: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        self.annotations = annotations
        self.meta = meta

    def wire(self) -> dict[str, Any]:
        """Give the block as the JSON object of the specification."""
        raise TypeError(f"{type(self).__name__} must define wire()")

    def _with_extras(self, block: dict[str, Any]) -> dict[str, Any]:
        if self.annotations is not None:
            block["annotations"] = self.annotations

        if self.meta is not None:
            block["_meta"] = self.meta

        return block

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Block) and self.wire() == other.wire()

    __hash__ = None  # pyright: ignore[reportAssignmentType] # equal by value, and mutable

    def __repr__(self) -> str:
        return f"<{type(self).__name__} block>"


class Text(Block):
    """Text for the model to read."""

    __slots__ = ("text",)

    def __init__(
        self,
        text: str,
        annotations: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        # Set here rather than by the base: nearly every call makes one.
        self.annotations = annotations
        self.meta = meta
        self.text = text

    def wire(self) -> dict[str, Any]:
        """Give the block as the JSON object of the specification."""
        block: dict[str, Any] = {"type": "text", "text": self.text}
        if self.annotations is None and self.meta is None:
            return block

        return self._with_extras(block)


class _Media(Block):
    __slots__ = ("media", "mime_type")

    kind = ""

    def __init__(self, media: bytes, mime_type: str, **extras: Mapping[str, Any] | None) -> None:
        super().__init__(**extras)
        self.media = media
        self.mime_type = mime_type

    def wire(self) -> dict[str, Any]:
        """Give the block as the JSON object of the specification."""
        encoded = _base64(self.media)
        return self._with_extras({"type": self.kind, "data": encoded, "mimeType": self.mime_type})


class Image(_Media):
    """An image: its raw bytes and its MIME type, such as `image/png`."""

    __slots__ = ()
    kind = "image"


class Audio(_Media):
    """A sound: its raw bytes and its MIME type, such as `audio/wav`."""

    __slots__ = ()
    kind = "audio"


class ResourceLink(Block):
    """A pointer to a resource that the client may read."""

    __slots__ = ("fields", "name", "uri")

    def __init__(
        self,
        uri: str,
        name: str,
        *,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        **extras: Mapping[str, Any] | None,
    ) -> None:
        super().__init__(**extras)
        self.uri = uri
        self.name = name
        self.fields = {
            "title": title,
            "description": description,
            "mimeType": mime_type,
            "size": size,
        }

    def wire(self) -> dict[str, Any]:
        """Give the block as the JSON object of the specification."""
        block = {"type": "resource_link", "uri": self.uri, "name": self.name}
        block |= {key: field for key, field in self.fields.items() if field is not None}
        return self._with_extras(block)


class EmbeddedResource(Block):
    """A resource inside the result: text as `str`, anything else as `bytes`."""

    __slots__ = ("contents", "mime_type", "uri")

    def __init__(
        self,
        uri: str,
        contents: str | bytes,
        mime_type: str | None = None,
        **extras: Mapping[str, Any] | None,
    ) -> None:
        super().__init__(**extras)
        self.uri = uri
        self.contents = contents
        self.mime_type = mime_type

    def wire(self) -> dict[str, Any]:
        """Give the block as the JSON object of the specification."""
        resource: dict[str, Any] = {"uri": self.uri}
        if self.mime_type is not None:
            resource["mimeType"] = self.mime_type

        if isinstance(self.contents, str):
            resource["text"] = self.contents
        else:
            resource["blob"] = _base64(self.contents)

        return self._with_extras({"type": "resource", "resource": resource})


@runtime_checkable
class OfficialBlock(Protocol):
    """A content block of the official `mcp_types` package."""

    type: str

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """Give the block as a dict; pydantic's own method."""
        ...


AnyBlock: TypeAlias = Block | OfficialBlock
"""What may stand in a result's content."""

OFFICIAL_BLOCK_TYPES = frozenset({"text", "image", "audio", "resource_link", "resource"})


def _base64(content: bytes) -> str:
    return binascii.b2a_base64(content, newline=False).decode("ascii")


def is_block(candidate: object) -> bool:
    """Say whether *candidate* is a content block, ours or an official one.

    Does not import `mcp_types`: whoever holds one of its objects has imported it already.
    """
    if isinstance(candidate, Block):
        return True

    return (
        type(candidate).__module__.partition(".")[0] == "mcp_types"
        and getattr(candidate, "type", None) in OFFICIAL_BLOCK_TYPES
    )


def is_official_result(class_: Any) -> bool:
    """Say whether *class_* is the official `CallToolResult`; does not import it."""
    return class_.__name__ == "CallToolResult" and class_.__module__.startswith("mcp_types")


def block_wire(block: AnyBlock, version: str) -> dict[str, Any]:
    """Give *block* as JSON that a peer of *version* knows.

    Older peers get audio as an embedded resource and a link as text, rather than a type that
    their schema rejects.
    """
    if isinstance(block, Text):
        return block.wire()

    wired = block.wire() if isinstance(block, Block) else _dump_official(block)
    since = FIELD_SINCE.get(f"content.{wired['type']}")
    if since is None or at_least(version, since):
        return wired

    if wired["type"] == "audio":
        resource = {"uri": "audio:", "mimeType": wired["mimeType"], "blob": wired["data"]}
        return {"type": "resource", "resource": resource}

    return {"type": "text", "text": f"{wired['name']}: {wired['uri']}"}


def _dump_official(block: OfficialBlock) -> dict[str, Any]:
    return block.model_dump(by_alias=True, exclude_none=True, mode="json")
