"""What reading a resource gives: contents, and how long they may be kept."""

from __future__ import annotations

import binascii
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

from .content import EmbeddedResource
from .errors import Fault, InvalidResult
from .jsonvalue import faults_of, json_text
from .protocol import FIELD_SINCE, MODERN_VERSIONS, at_least
from .results import Result

CacheScope: TypeAlias = Literal["public", "private"]

TEXT_MIME_TYPE = "text/plain"
BYTES_MIME_TYPE = "application/octet-stream"
JSON_MIME_TYPE = "application/json"


MAX_FILE_BYTES = 10 * 2**20
"""The most that is read of one file, unless it is added with another bound."""


class Contents:
    """The contents of one resource: text as `str`, anything else as `bytes`.

    Attributes:
        body: The text or the bytes.
        mime_type: What they are; the resource's own where it is None.
        uri: Whose they are; the URI that was asked for where it is None.
        meta: What they carry in `_meta`.
    """

    __slots__ = ("body", "meta", "mime_type", "uri")

    def __init__(
        self,
        body: str | bytes,
        mime_type: str | None = None,
        *,
        uri: str | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        self.body = body
        self.mime_type = mime_type
        self.uri = uri
        self.meta = meta

    def wire(self, version: str) -> dict[str, Any]:
        """Give the contents as a peer of *version* may see them."""
        wired: dict[str, Any] = {"uri": self.uri or ""}
        if self.mime_type is not None:
            wired["mimeType"] = self.mime_type

        if isinstance(self.body, str):
            wired["text"] = self.body
        else:
            wired["blob"] = binascii.b2a_base64(self.body, newline=False).decode("ascii")

        if self.meta is not None and at_least(version, FIELD_SINCE["resource._meta"]):
            wired["_meta"] = self.meta

        return wired

    def __repr__(self) -> str:
        return f"<Contents of {self.uri}>"


class ResourceResult(Result):
    """What `resources/read` gives.

    Attributes:
        contents: One or more contents.
        ttl: Seconds for which a modern client may keep them, or None for the resource's own.
        cache_scope: `public`, `private` where they depend on who asks, or None for the
            resource's own.
    """

    __slots__ = ("cache_scope", "contents", "ttl")

    def __init__(
        self,
        contents: Sequence[Contents],
        *,
        ttl: float | None = None,
        cache_scope: CacheScope | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(meta=meta)
        self.contents = contents
        self.ttl = ttl
        self.cache_scope: CacheScope | None = cache_scope

    def wire(self, version: str) -> dict[str, Any]:
        """Give the result as a peer of *version* may see it, without `_meta`.

        Source: MCP 2026-07-28, server/resources and server/utilities/caching.
        """
        wired: dict[str, Any] = {"contents": [part.wire(version) for part in self.contents]}
        if version in MODERN_VERSIONS:
            wired["ttlMs"] = milliseconds(self.ttl or 0.0)
            wired["cacheScope"] = self.cache_scope or "private"

        return wired

    def __repr__(self) -> str:
        return f"<ResourceResult, {len(self.contents)} part(s)>"


MAX_TTL_MS = 2**53 - 1
"""The largest integer that every JSON reader keeps exactly (RFC 8259, section 6)."""


def milliseconds(seconds: float) -> int:
    """Give *seconds*, 0 or more and maybe infinite, as the protocol's milliseconds."""
    # Compared first: what is infinite, or an integer beyond all floats, cannot be multiplied.
    return MAX_TTL_MS if seconds >= MAX_TTL_MS / 1000 else max(0, round(seconds * 1000))


def to_resource_result(returned: Any, uri: str, mime_type: str | None) -> ResourceResult:
    """Turn what a resource's handler returned into a result.

    Text and bytes are contents; so is an `EmbeddedResource`, and the official contents. A list
    with contents in it is several; everything else becomes JSON.

    Args:
        returned: What the handler returned.
        uri: The URI that was asked for, for contents that name none.
        mime_type: The resource's own, for contents that name none.

    Raises:
        InvalidResult: *returned* has no JSON form, or is None.
    """
    if isinstance(returned, ResourceResult):
        result = returned
        parts: Sequence[Any] = result.contents
    elif _is_official_result(returned):
        parts = returned.contents
        result = ResourceResult((), meta=returned.meta)
    else:
        result = ResourceResult(())
        items: Sequence[Any] = cast("Any", returned) if isinstance(returned, list | tuple) else ()
        parts = items if any(map(_is_contents, items)) else (cast("Any", returned),)

    return ResourceResult(
        [_finish(part, uri, mime_type, f"/contents/{i}") for i, part in enumerate(parts)],
        ttl=result.ttl,
        cache_scope=result.cache_scope,
        meta=result.meta,
    )


def _finish(part: Any, uri: str, mime_type: str | None, pointer: str) -> Contents:
    contents = _to_contents(part, mime_type, pointer)
    body: Any = contents.body
    if isinstance(body, bytearray | memoryview):
        body = bytes(cast("bytes", body))

    if isinstance(body, str):
        faults = [] if body.isascii() else list(faults_of(body, f"{pointer}/text"))
        default = TEXT_MIME_TYPE
    elif isinstance(body, bytes):
        faults, default = [], BYTES_MIME_TYPE
    else:
        problem = f"is of type {type(body).__name__}, neither text nor bytes"
        faults, default = [Fault(pointer, problem)], None

    if faults:
        raise InvalidResult(faults)

    return Contents(
        body,
        contents.mime_type or mime_type or default,
        uri=contents.uri or uri,
        meta=contents.meta,
    )


def _to_contents(part: Any, mime_type: str | None, pointer: str) -> Contents:
    if isinstance(part, Contents):
        return part

    if isinstance(part, EmbeddedResource):
        return Contents(part.contents, part.mime_type, uri=part.uri, meta=part.meta)

    if _is_official(part):
        body = part.text if hasattr(part, "text") else binascii.a2b_base64(part.blob)
        return Contents(body, part.mime_type, uri=str(part.uri), meta=part.meta)

    if isinstance(part, str | bytes | bytearray | memoryview):
        return Contents(cast("bytes", part))

    if part is None:
        problem = "is None; to say that there is no such resource, raise UnknownTarget"
        raise InvalidResult([Fault(pointer, problem)])

    from .serialise import to_json_value  # it needs pydantic, dear to import

    return Contents(json_text(to_json_value(part)), mime_type or JSON_MIME_TYPE)


def _is_contents(item: Any) -> bool:
    return isinstance(item, Contents | EmbeddedResource) or _is_official(item)


def _is_official(item: object) -> bool:
    return _official_name(item) in ("TextResourceContents", "BlobResourceContents")


def _is_official_result(returned: object) -> bool:
    return _official_name(returned) == "ReadResourceResult"


def _official_name(item: object) -> str | None:
    """Give the name of the official class of *item*, or None; does not import it."""
    official = type(item).__module__.partition(".")[0] == "mcp_types"
    return type(item).__name__ if official else None
