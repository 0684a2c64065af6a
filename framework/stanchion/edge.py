"""The edge: the one place where results and errors become the wire.

Layers and handlers speak in typed results and plain exceptions. What a peer may read of them,
in which form and under which code, is decided here and nowhere else. Nothing of an unexpected
exception passes: the peer gets the correlation id, the log gets the rest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from .call import Call
from .content import Text, block_wire
from .contents import ResourceResult
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
from .results import InputRequired, PageResult, PlainResult, Result, ToolResult
from .wire import Encoded, RequestId, encode_error, encode_result, result_head, unicode_text

TARGET_KINDS: Final = {
    "tools/call": "tool",
    "prompts/get": "prompt",
    "resources/read": "resource",
    "completion/complete": "reference",
}

HTTP_ERRORS: Final = range(400, 600)

META_REFUSAL: Final = "io.stanchion/refusal"
META_CORRELATION: Final = "io.stanchion/correlationId"


class WireError(NamedTuple):
    """What a JSON-RPC error says, but for its data.

    Attributes:
        code: Its code.
        message: Its message.
    """

    code: int
    message: str


class Reply:
    """What a transport sends back for one frame.

    Attributes:
        parts: The frame in pieces, in order; empty where nothing is answered. A long list is the
            same bytes for everybody, so a transport that can should not join them.
        status: The HTTP status; other transports ignore it.
        headers: HTTP fields to add.
        error: The JSON-RPC error that the frame is, or None; for those who observe.
    """

    __slots__ = ("error", "headers", "parts", "status")

    def __init__(
        self,
        body: bytes | tuple[bytes, ...] | None,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        error: WireError | None = None,
    ) -> None:
        """Take the frame whole, in pieces, or None where nothing is answered."""
        self.parts: tuple[bytes, ...] = (
            body if isinstance(body, tuple) else () if body is None else (body,)
        )
        self.status = status
        self.headers: Mapping[str, str] = headers or {}
        self.error = error

    @property
    def body(self) -> bytes | None:
        """The frame in one piece, or None where nothing is answered."""
        parts = self.parts
        if len(parts) > 1:
            return b"".join(parts)

        return parts[0] if parts else None


NO_REPLY: Final = Reply(None, 202)
"""For notifications, responses and cancelled requests: HTTP 202, and silence elsewhere."""


class Edge:
    """Turns results and errors into frames, for one server."""

    def __init__(self, server_meta: Mapping[str, Any], *, refusals_as_results: bool) -> None:
        self._server_meta = server_meta
        self._encoded_server_meta = orjson.Fragment(orjson.dumps(server_meta))
        self._refusals_as_results = refusals_as_results

    def result(self, call: Call, result: Result) -> Reply:
        """Answer *call* with *result*.

        Raises:
            InvalidResult: The result holds something that JSON has no form for.
        """
        encoded = result.encoded if isinstance(result, PageResult) else None
        if encoded is not None and not call.result_meta:
            return Reply((result_head(call.id), encoded.tail))

        wired = self._wire(result, call.peer.version, call.result_meta)
        try:
            return Reply(encode_result(call.id, wired))
        except TypeError as error:
            # The server's own part is encoded already, and nothing to look into.
            if wired.get("_meta") is self._encoded_server_meta:
                del wired["_meta"]

            raise InvalidResult(list(faults_of(wired))) from error

    def encode_page(self, page: PageResult, version: str) -> Encoded:
        """Encode *page* once for every peer of *version* that will ask for it."""
        return Encoded(orjson.dumps(self._wire(page, version, {})))

    def _wire(self, result: Result, version: str, call_meta: Mapping[str, Any]) -> dict[str, Any]:
        modern = version in MODERN_VERSIONS
        if isinstance(result, ToolResult):
            wired = _wire_tool_result(result, version, modern=modern)
        elif isinstance(result, ResourceResult):
            wired = result.wire(version)
        else:
            wired = _wire_other(result, version, modern=modern)

        if modern:
            wired.setdefault("resultType", "complete")

        if result.meta or call_meta:
            wired["_meta"] = {**(result.meta or {}), **call_meta}
            if modern:
                wired["_meta"] = {**self._server_meta, **wired["_meta"]}
                if call_meta and isinstance(result, PageResult):
                    wired["cacheScope"] = "private"  # it tells something of this very call
        elif modern:
            wired["_meta"] = self._encoded_server_meta

        return wired

    def error(self, call: Call, error: BaseException) -> Reply:
        """Answer *call* with *error*.

        Raises:
            Exception: Code of the server's owner failed once more, such as an override of
                `new_correlation_id`; the answer is then `last_resort`.
        """
        era = call.peer.era
        match error:
            case UnknownTarget(kind="resource"):
                code = INVALID_PARAMS if era is Era.MODERN else RESOURCE_NOT_FOUND
                body = encode_error(call.id, code, error.message, {"uri": error.name})
                return Reply(body, http_status(code, era), error=WireError(code, error.message))

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
        return Reply(body, http_status(fault, era), error=WireError(fault.code, fault.message))

    def last_resort(self, call: Call) -> Reply:
        """Answer *call* with a bare internal error; what to send where `error` failed."""
        told = WireError(INTERNAL_ERROR, "Internal error")
        body = encode_error(call.id, *told)
        return Reply(body, http_status(INTERNAL_ERROR, call.peer.era), error=told)

    def _refusal(self, call: Call, refusal: Refusal) -> Reply:
        reason = unicode_text(refusal.reason)
        detail: dict[str, Any] = {"reason": reason, "correlationId": call.correlation_id}
        headers = dict(refusal.headers)
        if refusal.policy is not None:
            detail["policy"] = refusal.policy

        # Infinite, as None, means that no other try makes sense.
        if refusal.retry_after is not None and math.isfinite(refusal.retry_after):
            wait = max(0.0, refusal.retry_after)
            detail["retryAfterSeconds"] = wait
            # RFC 9110, section 10.2.3: whole seconds; rounded up, or the retry comes too early.
            headers["Retry-After"] = str(math.ceil(wait))

        text = f"{refusal.outcome.value}: {reason}"
        if (
            self._refusals_as_results
            and call.method == "tools/call"
            and not _is_for_http(call, refusal)
        ):
            result = ToolResult(text, is_error=True, meta={META_REFUSAL: detail})
            return Reply(self._error_result(call, result), 200, headers)

        status = http_status(refusal.code, call.peer.era)
        if isinstance(refusal, Denied) and refusal.challenge is not None:
            status = 403
        elif _is_unidentified(call, refusal) and refusal.code in HTTP_ERRORS:
            status = refusal.code  # as for what is refused before it is a message

        body = encode_error(call.id, refusal.code, text, detail)
        return Reply(body, status, headers, WireError(refusal.code, text))

    def _failure(self, call: Call, error: CallError) -> Reply:
        """Answer a failure of the tool or of ours: a result for tools, an error elsewhere."""
        text = public_text(error)
        if call.method == "tools/call":
            meta = {META_CORRELATION: call.correlation_id}
            return Reply(self._error_result(call, ToolResult(text, is_error=True, meta=meta)))

        if isinstance(error, InvalidArguments):
            code, detail = INVALID_PARAMS, None
        else:
            code, detail = INTERNAL_ERROR, {"correlationId": call.correlation_id}

        body = encode_error(call.id, code, text, detail)
        return Reply(body, http_status(code, call.peer.era), error=WireError(code, text))

    def _error_result(self, call: Call, result: ToolResult) -> bytes:
        """Encode an `isError` result, without the call's own `_meta` where that cannot be sent."""
        try:
            return encode_result(call.id, self._wire(result, call.peer.version, call.result_meta))
        except TypeError:
            return encode_result(call.id, self._wire(result, call.peer.version, {}))


def _is_unidentified(call: Call, refusal: Refusal) -> bool:
    return call.connection is not None and call.connection.unidentified is refusal


def _is_for_http(call: Call, refusal: Refusal) -> bool:
    """Say whether the client's HTTP side must see *refusal*, so as to get a token and try again.

    A model cannot do that, so the refusal is no result for one.
    """
    return (
        "WWW-Authenticate" in refusal.headers
        and call.connection is not None
        and call.connection.transport == "http"
    )


def public_text(error: CallError) -> str:
    """Give what the peer may read of *error*.

    Always Unicode text: a lone surrogate in a tool's words must not cost the peer its answer.
    """
    return unicode_text(_public_words(error))


def _public_words(error: CallError) -> str:
    match error:
        case Crashed(message=message, correlation_id=correlation_id):
            return f"{message} (correlation id {correlation_id})"

        case ToolError(message=message):
            return message

        case InvalidArguments() | InvalidResult() | TimedOut() | Refusal():
            return str(error)

        case _:
            return "Internal error"


def _wire_tool_result(result: ToolResult, version: str, *, modern: bool) -> dict[str, Any]:
    # Text exists in every version, and is what nearly every result is made of.
    wired: dict[str, Any] = {
        "content": [
            block.wire() if type(block) is Text else block_wire(block, version)
            for block in result.content
        ]
    }
    structured = result.structured
    if structured is not None and (modern or _fits_legacy(structured, version)):
        wired["structuredContent"] = structured

    if result.is_error:
        wired["isError"] = True

    return wired


def _fits_legacy(structured: Any, version: str) -> bool:
    """Say whether a legacy peer has a place for *structured*: from 2025-06-18 on, for objects."""
    since = FIELD_SINCE["result.structuredContent"]
    return at_least(version, since) and isinstance(structured, Mapping)


def _wire_other(result: Result, version: str, *, modern: bool) -> dict[str, Any]:
    if isinstance(result, PlainResult):
        return dict(result.fields)

    if isinstance(result, InputRequired) and modern:
        return _wire_input_required(result)

    if not isinstance(result, PageResult):
        return result.wire(version)

    return _wire_page(result, modern=modern)


def _wire_input_required(result: InputRequired) -> dict[str, Any]:
    wired: dict[str, Any] = {"resultType": "input_required"}
    if result.asks:
        wired["inputRequests"] = {key: ask.wire() for key, ask in result.asks.items()}

    if result.sealed is not None:
        wired["requestState"] = result.sealed

    return wired


def _wire_page(result: PageResult, *, modern: bool) -> dict[str, Any]:
    page: dict[str, Any] = {result.key: result.entries}
    if result.next_cursor is not None:
        page["nextCursor"] = result.next_cursor

    if modern:
        scope = "private" if result.altered else result.cache_scope
        page |= {"ttlMs": result.ttl_ms, "cacheScope": scope}

    return page
