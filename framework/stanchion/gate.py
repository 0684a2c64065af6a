"""The gate: whether a message may come in, decided by tables alone.

Pure functions, no I/O, no server. Both eras pass here; what differs between versions stands in
`stanchion.protocol`. The rules of a modern request are checked in the specification's order:
`_meta`, then headers, then version, then method, then parameters.

Source: MCP 2025-11-25, basic/lifecycle and basic/transports; MCP 2026-07-28, basic and
basic/transports.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, cast

from .errors import (
    HeaderMismatch,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    ProtocolError,
    UnsupportedVersion,
)
from .protocol import (
    CLIENT_NOTIFICATIONS,
    CLIENT_REQUESTS,
    HEADER_METHOD,
    HEADER_NAME,
    HEADER_VERSION,
    LATEST_LEGACY_VERSION,
    LEGACY_STATUS,
    LEGACY_VERSIONS,
    LOG_LEVELS,
    META_LOG_LEVEL,
    META_VERSION,
    MODERN_META,
    MODERN_STATUS,
    MODERN_VERSIONS,
    SUPPORTED_VERSIONS,
    Era,
    Method,
    Param,
)
from .wire import JsonValue, Notification, Request

NO_METHODS: Mapping[str, Method] = MappingProxyType({})

BEFORE_INITIALIZE = frozenset({"initialize", "ping"})
"""What a legacy peer may send before the handshake."""

_BASE64_PREFIX = "=?base64?"
_BASE64_SUFFIX = "?="


def era_of_message(message: Request | Notification, headers: Mapping[str, str] | None) -> Era:
    """Tell the era that one message claims.

    The message is modern if its `_meta` names a protocol version, or if its version header
    names one that no legacy peer could. A header without `_meta` counts too, so that a modern
    peer that forgot `_meta` is told so instead of being taken for a legacy one.

    Args:
        message: The message.
        headers: HTTP header fields with lower-case names, or None on other transports.
    """
    meta = None if message.params is None else message.params.get("_meta")
    if isinstance(meta, dict) and META_VERSION in meta:
        return Era.MODERN

    version = None if headers is None else headers.get(HEADER_VERSION)
    return Era.LEGACY if version is None or version in LEGACY_VERSIONS else Era.MODERN


def admit_modern(
    request: Request,
    headers: Mapping[str, str] | None,
    custom: Mapping[str, Method] = NO_METHODS,
) -> tuple[str, Method]:
    """Let a modern request in; gives its version and its method's row.

    Args:
        request: The request.
        headers: HTTP header fields with lower-case names, or None on other transports.
        custom: `{method: row}` of what the server has beside the protocol.

    Raises:
        InvalidParams: A required `_meta` key is missing, or a member has the wrong type or an
            unknown log level.
        HeaderMismatch: A required header is missing, malformed, or disagrees with the body.
        UnsupportedVersion: The version is not served.
        MethodNotFound: The method does not exist in the version.
    """
    meta = _check_meta(request.params)
    version: str = meta[META_VERSION]
    if headers is not None:
        if headers.get(HEADER_VERSION) != version:
            raise _header_fault(headers, HEADER_VERSION)

        if headers.get(HEADER_METHOD) != request.method:
            raise _header_fault(headers, HEADER_METHOD)

    if version not in MODERN_VERSIONS:
        raise UnsupportedVersion(version, SUPPORTED_VERSIONS)

    method = CLIENT_REQUESTS.get((request.method, version)) or custom.get(request.method)
    if method is None:
        raise MethodNotFound(request.method)

    if headers is not None and method.routed_by is not None:
        _check_name(headers, request.params or {}, method.routed_by)

    check_params(method, request.params)
    return version, method


def admit_legacy(
    request: Request, negotiated: str | None, custom: Mapping[str, Method] = NO_METHODS
) -> tuple[str, Method]:
    """Let a legacy request in; gives its version and its method's row.

    Args:
        request: The request.
        negotiated: The version that `initialize` agreed on, or None before it.
        custom: `{method: row}` of what the server has beside the protocol.

    Raises:
        InvalidRequest: The handshake is missing, or comes a second time.
        MethodNotFound: The method does not exist in the version.
        InvalidParams: A member of `params` is missing or has the wrong type, `_meta` included.
    """
    meta = None if request.params is None else request.params.get("_meta")
    if meta is not None and not isinstance(meta, dict):
        raise InvalidParams("params._meta must be an object")

    if request.method == "initialize":
        if negotiated is not None:
            raise InvalidRequest("This connection is initialized already")

        method = CLIENT_REQUESTS["initialize", LATEST_LEGACY_VERSION]
        check_params(method, request.params)
        return negotiate(cast("dict[str, Any]", request.params)["protocolVersion"]), method

    if negotiated is None and request.method not in BEFORE_INITIALIZE:
        raise InvalidRequest(
            "Not initialized: send initialize first, or name the protocol version in "
            f"params._meta[{META_VERSION!r}]"
        )

    version = negotiated or LATEST_LEGACY_VERSION
    method = CLIENT_REQUESTS.get((request.method, version)) or custom.get(request.method)
    if method is None:
        raise MethodNotFound(request.method)

    check_params(method, request.params)
    return version, method


def admit_notification(
    notification: Notification, version: str, custom: Mapping[str, Method] = NO_METHODS
) -> Method | None:
    """Give the row of a notification, or None where it is unknown or malformed.

    A notification is never answered, so a bad one is dropped.
    """
    key = notification.method, version
    method = CLIENT_NOTIFICATIONS.get(key) or custom.get(notification.method)
    if method is None:
        return None

    try:
        check_params(method, notification.params)
    except InvalidParams:
        return None

    return method


def negotiate(requested: str) -> str:
    """Give the version to answer `initialize` with: the one asked for, or our latest."""
    return requested if requested in LEGACY_VERSIONS else LATEST_LEGACY_VERSION


def http_status(error: ProtocolError | int, era: Era) -> int:
    """Give the HTTP status that an error, or an error code, has in *era*."""
    code = error if isinstance(error, int) else error.code
    return (MODERN_STATUS if era is Era.MODERN else LEGACY_STATUS).get(code, 200)


def check_params(method: Method, params: Mapping[str, Any] | None) -> None:
    """Check the members of `params` that the table lists for *method*.

    A null stands for a member that is left out, as clients in languages without the difference
    send it.

    Raises:
        InvalidParams: One is missing or has the wrong type.
    """
    for param in method.params:
        value = None if params is None else params.get(param.name)
        if type(value) is param.type:
            continue

        if value is None:
            if param.required:
                raise InvalidParams(f"{method.name}: params.{param.name} is required")
        elif not _has_type(value, param):
            raise InvalidParams(
                f"{method.name}: params.{param.name} must be {_type_name(param.type)}"
            )


def _check_meta(params: Mapping[str, Any] | None) -> dict[str, Any]:
    found: JsonValue = None if params is None else params.get("_meta")
    if not isinstance(found, dict):
        raise InvalidParams("params._meta is required and must be an object")

    meta = found
    for key, type_, required in MODERN_META:
        value = meta.get(key)
        if type(value) is type_ or (value is None and not required):
            continue

        if key not in meta:
            raise InvalidParams(f"params._meta[{key!r}] is required")

        if not isinstance(value, type_):
            raise InvalidParams(f"params._meta[{key!r}] must be {_type_name(type_)}")

    level = meta.get(META_LOG_LEVEL)
    if level is not None and level not in LOG_LEVELS:
        raise InvalidParams(f"params._meta[{META_LOG_LEVEL!r}] is no log level")

    return meta


def _header_fault(headers: Mapping[str, str], name: str) -> HeaderMismatch:
    problem = "disagrees with the body" if name in headers else "is required"
    return HeaderMismatch(f"The header {name} {problem}")


def _check_name(headers: Mapping[str, str], params: Mapping[str, Any], routed_by: str) -> None:
    body = params.get(routed_by)
    if not isinstance(body, str):
        return  # the parameter check that follows names what is wrong

    value = headers.get(HEADER_NAME)
    if value is None:
        raise HeaderMismatch(f"The header {HEADER_NAME} is required")

    # A plain value that equals the body needs no decoding.
    plain = value.isascii() and value.isprintable() and not value.startswith(_BASE64_PREFIX)
    if value == body and plain:
        return

    if decode_header(value) != body:
        raise HeaderMismatch(f"The header {HEADER_NAME} disagrees with params.{routed_by}")


def decode_header(value: str) -> str:
    """Decode the value of `Mcp-Name` or `Mcp-Param-*`: as it stands, or base64 of UTF-8.

    Raises:
        HeaderMismatch: The value holds more than printable ASCII, or is marked as base64 and is
            not base64 of UTF-8.

    Source: MCP 2026-07-28, basic/transports, "Value encoding".
    """
    if not (value.isascii() and value.isprintable()):
        raise HeaderMismatch("A header holds characters that must be encoded as base64")

    encoded = value.removeprefix(_BASE64_PREFIX)
    if encoded == value or not encoded.endswith(_BASE64_SUFFIX):
        return value

    encoded = encoded.removesuffix(_BASE64_SUFFIX)
    try:
        return binascii.a2b_base64(encoded, strict_mode=True).decode()
    except (binascii.Error, ValueError):
        raise HeaderMismatch("A header is marked as base64 and cannot be decoded") from None


def _has_type(value: Any, param: Param) -> bool:
    # bool is an int in Python and is no number in JSON.
    if isinstance(value, bool):
        return param.type is bool

    return isinstance(value, param.type)


def _type_name(type_: type | tuple[type, ...]) -> str:
    names = {
        str: "a string",
        dict: "an object",
        int: "an integer",
        float: "a number",
        bool: "a boolean",
    }
    types = type_ if isinstance(type_, tuple) else (type_,)
    return " or ".join(names[each] for each in types)
