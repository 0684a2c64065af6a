"""The edge: the one place where results and errors become the wire.

Layers and handlers speak in typed results and plain exceptions. What a peer may read of them,
in which form and under which code, is decided here and nowhere else. Nothing of an unexpected
exception passes: the peer gets the correlation id, the log gets the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from .call import Call
from .content import block_wire
from .errors import (
    CallError,
    Crashed,
    Denied,
    InvalidArguments,
    InvalidResult,
    ProtocolError,
    Refusal,
    TimedOut,
    ToolError,
    UnknownTarget,
)
from .gate import http_status
from .jsonvalue import faults_of
from .protocol import (
    FIELD_SINCE,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    MODERN_VERSIONS,
    RESOURCE_NOT_FOUND,
    Era,
    at_least,
)
from .results import PageResult, PlainResult, Result, ToolResult
from .wire import Encoded, RequestId, encode_error, encode_result

TARGET_KINDS: Final = {"tools/call": "tool", "prompts/get": "prompt", "resources/read": "resource"}

META_REFUSAL: Final = "io.stanchion/refusal"
META_CORRELATION: Final = "io.stanchion/correlationId"


class Reply:
    """What a transport sends back for one frame.

    Attributes:
        body: The frame, or None where nothing is answered.
        status: The HTTP status; other transports ignore it.
        headers: HTTP fields to add.
    """

    __slots__ = ("body", "headers", "status")

    def __init__(
        self, body: bytes | None, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        self.body = body
        self.status = status
        self.headers: Mapping[str, str] = headers or {}


NO_REPLY: Final = Reply(None, 202)
"""For notifications, responses and cancelled requests: HTTP 202, and silence elsewhere."""


class Edge:
    """Turns results and errors into frames, for one server."""

    def __init__(self, server_meta: Mapping[str, Any], *, refusals_as_results: bool) -> None:
        self._server_meta = server_meta
        self._refusals_as_results = refusals_as_results

    def result(self, call: Call, result: Result) -> Reply:
        """Answer *call* with *result*.

        Raises:
            InvalidResult: The result holds something that JSON has no form for.
        """
        if isinstance(result, PageResult) and result.encoded is not None and not call.result_meta:
            return Reply(encode_result(call.id, result.encoded))

        wired = self._wire(result, call.peer.version, call.result_meta)
        try:
            return Reply(encode_result(call.id, wired))
        except TypeError as error:
            raise InvalidResult(list(faults_of(wired))) from error

    def encode_page(self, page: PageResult, version: str) -> Encoded:
        """Encode *page* once for every peer of *version* that will ask for it."""
        return Encoded(orjson.dumps(self._wire(page, version, {})))

    def _wire(self, result: Result, version: str, call_meta: Mapping[str, Any]) -> dict[str, Any]:
        wired = _wire_body(result, version)
        meta: dict[str, Any] = {}
        if version in MODERN_VERSIONS:
            wired.setdefault("resultType", "complete")
            meta.update(self._server_meta)
            if isinstance(result, PageResult):
                wired["ttlMs"] = result.ttl_ms
                wired["cacheScope"] = result.cache_scope

        if result.meta:
            meta.update(result.meta)

        meta.update(call_meta)
        if meta:
            wired["_meta"] = meta

        return wired

    def error(self, call: Call, error: BaseException) -> Reply:
        """Answer *call* with *error*."""
        era = call.peer.era
        match error:
            case UnknownTarget(kind="resource"):
                code = INVALID_PARAMS if era is Era.MODERN else RESOURCE_NOT_FOUND
                body = encode_error(call.id, code, error.message, {"uri": error.name})
                return Reply(body, http_status(code, era))

            case ProtocolError():
                return self.fault(call.id, error, era)

            case Denied(hidden=True):
                kind = TARGET_KINDS.get(call.method, "target")
                return self.error(call, UnknownTarget(kind, call.target_name or ""))

            case Refusal():
                return self._refusal(call, error)

            case CallError():
                return self._failure(call, error)

            case _:
                return self._failure(call, Crashed(call.correlation_id))

    def fault(self, id: RequestId | None, fault: ProtocolError, era: Era) -> Reply:
        """Answer request *id*, or None where the id is unknown, with a protocol fault."""
        body = encode_error(id, fault.code, fault.message, fault.detail)
        return Reply(body, http_status(fault, era))

    def _refusal(self, call: Call, refusal: Refusal) -> Reply:
        detail: dict[str, Any] = {"reason": refusal.reason, "correlationId": call.correlation_id}
        headers = dict(refusal.headers)
        if refusal.policy is not None:
            detail["policy"] = refusal.policy

        if refusal.retry_after is not None:
            detail["retryAfterSeconds"] = refusal.retry_after
            # RFC 9110, section 10.2.3: whole seconds; rounded up, or the retry comes too early.
            headers["Retry-After"] = str(max(0, -int(-refusal.retry_after // 1)))

        name = refusal.outcome.value
        if self._refusals_as_results and call.method == "tools/call":
            text = f"{name}: {refusal.reason}"
            result = ToolResult(text, is_error=True, meta={META_REFUSAL: detail})
            return Reply(self.result(call, result).body, 200, headers)

        status = http_status(refusal.code, call.peer.era)
        if isinstance(refusal, Denied) and refusal.challenge is not None:
            status = 403

        body = encode_error(call.id, refusal.code, f"{name}: {refusal.reason}", detail)
        return Reply(body, status, headers)

    def _failure(self, call: Call, error: CallError) -> Reply:
        """Answer a failure of the tool or of ours: a result for tools, an error elsewhere."""
        text = public_text(error)
        if call.method == "tools/call":
            meta = {META_CORRELATION: call.correlation_id}
            return self.result(call, ToolResult(text, is_error=True, meta=meta))

        if isinstance(error, InvalidArguments):
            code, detail = INVALID_PARAMS, None
        else:
            code, detail = INTERNAL_ERROR, {"correlationId": call.correlation_id}

        return Reply(encode_error(call.id, code, text, detail), http_status(code, call.peer.era))


def public_text(error: CallError) -> str:
    """Give what the peer may read of *error*."""
    match error:
        case Crashed(message=message, correlation_id=correlation_id):
            return f"{message} (correlation id {correlation_id})"

        case ToolError(message=message):
            # A lone surrogate in a tool's words must not cost the peer its answer.
            return message.encode("utf-8", "replace").decode()

        case InvalidArguments() | InvalidResult() | TimedOut() | Refusal():
            return str(error)

        case _:
            return "Internal error"


def _wire_body(result: Result, version: str) -> dict[str, Any]:
    match result:
        case ToolResult():
            return _wire_tool_result(result, version)

        case PageResult():
            page: dict[str, Any] = {result.key: result.entries}
            if result.next_cursor is not None:
                page["nextCursor"] = result.next_cursor

            return page

        case PlainResult():
            return dict(result.fields)

        case _:
            raise TypeError(f"{type(result).__name__} has no form on the wire")


def _wire_tool_result(result: ToolResult, version: str) -> dict[str, Any]:
    wired: dict[str, Any] = {"content": [block_wire(block, version) for block in result.content]}
    if result.structured is not None and at_least(version, FIELD_SINCE["result.structuredContent"]):
        wired["structuredContent"] = result.structured

    if result.is_error:
        wired["isError"] = True

    return wired
