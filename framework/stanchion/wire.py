"""Bytes to a message and back: JSON-RPC 2.0, and no MCP in it.

Sans-IO. `decode` reads one frame, `encode_*` make one; neither knows a transport, a version or
a method. Source: JSON-RPC 2.0 specification, and MCP 2025-11-25, basic, "Messages", which
narrows ids to strings and integers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import orjson

from .errors import InvalidRequest, ParseError

JsonValue: TypeAlias = dict[str, Any] | list[Any] | str | int | float | None
"""What JSON decodes to."""

RequestId: TypeAlias = str | int
"""What MCP allows as an id; never null, a boolean or a fraction."""

MAX_ID_LENGTH = 1024
"""Characters of a string id. An id is echoed and kept while its call runs, so it is bounded."""


class Encoded:
    """A result that is encoded already, and answers any number of requests as it stands.

    Attributes:
        tail: The result and the end of the frame; what stands before it is `result_head`.
    """

    __slots__ = ("tail",)

    def __init__(self, json: bytes) -> None:
        self.tail = json + b"}"


@dataclass(slots=True)
class Request:
    """A request: it has an id and is answered exactly once, unless it is cancelled."""

    id: RequestId
    method: str
    params: dict[str, Any] | None


@dataclass(slots=True)
class Notification:
    """A notification: it has no id and is never answered."""

    method: str
    params: dict[str, Any] | None


@dataclass(slots=True)
class Response:
    """The peer's answer to a request of ours; exactly one of `result` and `error` is set."""

    id: RequestId | None
    result: dict[str, Any] | None
    error: dict[str, Any] | None


Message: TypeAlias = Request | Notification | Response


def decode(frame: bytes | bytearray | memoryview | str) -> Message | list[Any]:
    """Read one frame: a message, or a batch as the list of its undecoded members.

    Each member of a batch goes through `decode_member`, so that one bad member does not spoil
    the others.

    Raises:
        ParseError: The frame is not JSON; so are `NaN`, lone surrogates, what is not UTF-8, and
            nesting beyond 1,024 levels.
        InvalidRequest: The frame is JSON but no JSON-RPC 2.0 message; `request_id` is its id
            where that could be read.
    """
    member: JsonValue
    try:
        member = orjson.loads(frame)
    except orjson.JSONDecodeError as error:
        raise ParseError(f"Parse error: {error.msg}") from None

    if isinstance(member, list):
        return member

    return decode_member(member)


def decode_member(member: JsonValue) -> Message:
    """Read one JSON value as a message.

    Raises:
        InvalidRequest: The value is not a JSON-RPC 2.0 message.
    """
    if not isinstance(member, dict):
        raise InvalidRequest("A message must be a JSON object")

    if "method" not in member and ("result" in member or "error" in member):
        return _decode_response(member)

    id: Any = member.get("id")
    has_id = id is not None or "id" in member
    if has_id and type(id) is not int and (problem := _id_problem(id)):
        raise InvalidRequest(problem)

    if member.get("jsonrpc") != "2.0":
        raise InvalidRequest('"jsonrpc" must be "2.0"', request_id=id)

    method = member.get("method")
    if not isinstance(method, str) or not method:
        raise InvalidRequest('"method" must be a non-empty string', request_id=id)

    params: JsonValue = member.get("params")
    if params is not None and not isinstance(params, dict):
        raise InvalidRequest('"params" must be an object', request_id=id)

    if has_id:
        return Request(id, method, params)  # pyright: ignore[reportArgumentType] # checked above

    return Notification(method, params)


def _id_problem(id: Any) -> str | None:
    if isinstance(id, str):
        return (
            None if len(id) <= MAX_ID_LENGTH else f'"id" is longer than {MAX_ID_LENGTH} characters'
        )

    # bool is an int in Python and is no id in JSON-RPC.
    if isinstance(id, int) and not isinstance(id, bool):
        return None

    return '"id" must be a string or an integer'


def _decode_response(fields: dict[str, Any]) -> Response:
    has_result, has_error = "result" in fields, "error" in fields
    if has_result and has_error:
        raise InvalidRequest('A response has exactly one of "result" and "error"')

    if fields.get("jsonrpc") != "2.0":
        raise InvalidRequest('"jsonrpc" must be "2.0"')

    id = fields.get("id")
    # A peer that could not read our id answers with an error whose id is null or left out.
    if (problem := _id_problem(id)) and not (has_error and id is None):
        raise InvalidRequest(problem)

    body = fields["result"] if has_result else fields["error"]
    if not isinstance(body, dict):
        raise InvalidRequest('"result" and "error" must be objects')

    body = cast("dict[str, Any]", body)
    return Response(id, body, None) if has_result else Response(id, None, body)


def encode_result(id: RequestId, result: Mapping[str, Any] | Encoded) -> bytes:
    """Make the frame that answers request *id* with *result*.

    Raises:
        TypeError: *result* holds something that JSON has no form for.
    """
    if isinstance(result, Encoded):
        return result_head(id) + result.tail

    return orjson.dumps({"jsonrpc": "2.0", "id": id, "result": result})


def result_head(id: RequestId) -> bytes:
    """Make the start of the frame that answers request *id*, up to the result."""
    return b'{"jsonrpc":"2.0","id":%b,"result":' % orjson.dumps(id)


def encode_error(
    id: RequestId | None, code: int, message: str, detail: Mapping[str, Any] | None = None
) -> bytes:
    """Make the frame that answers request *id* with an error; a None id is sent as null.

    Never fails: what is no Unicode text in *message* is replaced, and a *detail* that JSON has
    no form for is left out, because an error that cannot be sent leaves the peer waiting.
    """
    error: dict[str, Any] = {"code": code, "message": unicode_text(message)}
    if detail is not None:
        error["data"] = detail

    try:
        return orjson.dumps({"jsonrpc": "2.0", "id": id, "error": error})
    except TypeError:
        error.pop("data", None)
        return orjson.dumps({"jsonrpc": "2.0", "id": id, "error": error})


def unicode_text(text: str) -> str:
    """Give *text* with a question mark for each lone surrogate, which UTF-8 has no form for."""
    return text.encode("utf-8", "replace").decode()


def encode_request(id: RequestId, method: str, params: Mapping[str, Any]) -> bytes:
    """Make the frame of a request of ours."""
    return orjson.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def encode_notification(method: str, params: Mapping[str, Any] | None = None) -> bytes:
    """Make the frame of a notification."""
    if params is None:
        return orjson.dumps({"jsonrpc": "2.0", "method": method})

    return orjson.dumps({"jsonrpc": "2.0", "method": method, "params": params})


def encode_batch(frames: list[bytes]) -> bytes:
    """Join frames that are encoded already into one batch."""
    return b"[" + b",".join(frames) + b"]"
