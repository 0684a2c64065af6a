"""The protocol as tables: versions, methods, parameters, headers, codes.

Nothing here decides; `stanchion.gate` reads these tables and does. All five versions are listed
in full, whether or not a handler exists yet, so that serving another method means adding a
handler and nothing else.

Source: the specification's schema of each version; MCP 2026-07-28, basic and basic/transports.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

V2024_11_05: Final = "2024-11-05"
V2025_03_26: Final = "2025-03-26"
V2025_06_18: Final = "2025-06-18"
V2025_11_25: Final = "2025-11-25"
V2026_07_28: Final = "2026-07-28"

LEGACY_VERSIONS: Final = (V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25)
"""The versions with an `initialize` handshake, oldest first."""

MODERN_VERSIONS: Final = (V2026_07_28,)
"""The versions in which every request says all of itself in `_meta`, oldest first."""

VERSIONS: Final = LEGACY_VERSIONS + MODERN_VERSIONS

SUPPORTED_VERSIONS: Final = VERSIONS[::-1]
"""What a peer is told that it may speak, newest first."""

LATEST_LEGACY_VERSION: Final = LEGACY_VERSIONS[-1]
LATEST_MODERN_VERSION: Final = MODERN_VERSIONS[-1]
ASSUMED_HTTP_VERSION: Final = V2025_03_26
"""What a legacy HTTP peer without the version header speaks (MCP 2025-11-25, transports)."""

_RANK: Final = {version: rank for rank, version in enumerate(VERSIONS)}


class Era(Enum):
    """The two ways in which a peer tells who it is."""

    LEGACY = "legacy"
    MODERN = "modern"


def era_of(version: str) -> Era:
    """Name the era of a version that is in `VERSIONS`."""
    return Era.MODERN if version in MODERN_VERSIONS else Era.LEGACY


def at_least(version: str, floor: str) -> bool:
    """Say whether *version* is *floor* or newer; both are in `VERSIONS`."""
    return _RANK[version] >= _RANK[floor]


# _meta keys (MCP 2026-07-28, basic, "_meta").
META_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
META_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
META_CLIENT: Final = "io.modelcontextprotocol/clientInfo"
META_LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
META_SERVER: Final = "io.modelcontextprotocol/serverInfo"
META_SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"
META_RELATED_TASK: Final = "io.modelcontextprotocol/related-task"
META_PROGRESS_TOKEN: Final = "progressToken"  # noqa: S105 # no secret

MODERN_META: Final[tuple[tuple[str, type, bool], ...]] = (
    (META_VERSION, str, True),
    (META_CAPABILITIES, dict, True),
    (META_CLIENT, dict, False),
    (META_LOG_LEVEL, str, False),
)
"""What a modern request carries in `_meta`: the key, its JSON type, whether it must be there."""

LOG_LEVELS: Final = (
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency",
)  # fmt: skip
"""What a log level may be, least severe first (RFC 5424, section 6.2.1)."""

# HTTP header names, in the lower case in which ASGI gives them.
HEADER_VERSION: Final = "mcp-protocol-version"
HEADER_METHOD: Final = "mcp-method"
HEADER_NAME: Final = "mcp-name"
HEADER_PARAM_PREFIX: Final = "mcp-param-"
HEADER_SESSION: Final = "mcp-session-id"
HEADER_LAST_EVENT: Final = "last-event-id"

ELICITATION_COMPLETE: Final = "notifications/elicitation/complete"

# JSON-RPC and MCP error codes.
PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
RESOURCE_NOT_FOUND: Final = -32002
URL_ELICITATION_REQUIRED: Final = -32042
HEADER_MISMATCH: Final = -32020
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022

MODERN_STATUS: Final = MappingProxyType(
    {
        PARSE_ERROR: 400,
        INVALID_REQUEST: 400,
        METHOD_NOT_FOUND: 404,
        INVALID_PARAMS: 400,
        HEADER_MISMATCH: 400,
        MISSING_CAPABILITY: 400,
        UNSUPPORTED_VERSION: 400,
        401: 401,
        429: 429,
        503: 503,
    }
)
"""The HTTP status of a modern error, by code; 200 where the code is not listed."""

LEGACY_STATUS: Final = MappingProxyType(
    {PARSE_ERROR: 400, INVALID_REQUEST: 400, UNSUPPORTED_VERSION: 400, 401: 401}
)
"""The HTTP status of a legacy error, by code; 200 where the code is not listed."""


@dataclass(frozen=True, slots=True)
class Param:
    """One member of `params`: its name, its JSON type, and whether it must be there."""

    name: str
    type: type | tuple[type, ...]
    required: bool = True


@dataclass(frozen=True, slots=True)
class Method:
    """One method in a range of versions.

    Attributes:
        name: The method's name on the wire.
        versions: The versions in which it exists.
        params: The members of `params` that are checked before a handler sees them.
        routed_by: The member of `params` that the header `Mcp-Name` repeats, or None.
        capability: The server capability that announces the method, or None where every
            server has it.
    """

    name: str
    versions: tuple[str, ...]
    params: tuple[Param, ...] = ()
    routed_by: str | None = None
    capability: str | None = None


_CURSOR = (Param("cursor", str, required=False),)
_URI = (Param("uri", str),)
_TASK = (Param("taskId", str),)

CLIENT_REQUEST_METHODS: Final = (
    Method(
        "initialize",
        LEGACY_VERSIONS,
        (Param("protocolVersion", str), Param("capabilities", dict), Param("clientInfo", dict)),
    ),
    Method("ping", LEGACY_VERSIONS),
    Method("server/discover", MODERN_VERSIONS),
    Method("tools/list", VERSIONS, _CURSOR, capability="tools"),
    Method(
        "tools/call",
        VERSIONS,
        (Param("name", str), Param("arguments", dict, required=False)),
        routed_by="name",
        capability="tools",
    ),
    Method("resources/list", VERSIONS, _CURSOR, capability="resources"),
    Method("resources/templates/list", VERSIONS, _CURSOR, capability="resources"),
    Method("resources/read", VERSIONS, _URI, routed_by="uri", capability="resources"),
    Method("resources/subscribe", LEGACY_VERSIONS, _URI, capability="resources"),
    Method("resources/unsubscribe", LEGACY_VERSIONS, _URI, capability="resources"),
    Method("prompts/list", VERSIONS, _CURSOR, capability="prompts"),
    Method(
        "prompts/get",
        VERSIONS,
        (Param("name", str), Param("arguments", dict, required=False)),
        routed_by="name",
        capability="prompts",
    ),
    Method(
        "completion/complete",
        VERSIONS,
        (Param("ref", dict), Param("argument", dict), Param("context", dict, required=False)),
        capability="completions",
    ),
    Method("logging/setLevel", LEGACY_VERSIONS, (Param("level", str),), capability="logging"),
    Method(
        "subscriptions/listen",
        MODERN_VERSIONS,
        (Param("notifications", dict),),
    ),
    Method("tasks/get", (V2025_11_25, V2026_07_28), _TASK, routed_by="taskId", capability="tasks"),
    Method("tasks/result", (V2025_11_25,), _TASK, capability="tasks"),
    Method("tasks/list", (V2025_11_25,), _CURSOR, capability="tasks"),
    Method(
        "tasks/cancel", (V2025_11_25, V2026_07_28), _TASK, routed_by="taskId", capability="tasks"
    ),
    Method(
        "tasks/update",
        MODERN_VERSIONS,
        (*_TASK, Param("inputResponses", dict)),
        routed_by="taskId",
        capability="tasks",
    ),
)
"""Every request that a client may send."""

_CANCELLED = Method(
    "notifications/cancelled",
    VERSIONS,
    (Param("requestId", (str, int)), Param("reason", str, required=False)),
)
_PROGRESS_PARAMS = (
    Param("progressToken", (str, int)),
    Param("progress", (int, float)),
    Param("total", (int, float), required=False),
    Param("message", str, required=False),
)

CLIENT_NOTIFICATION_METHODS: Final = (
    _CANCELLED,
    Method("notifications/initialized", LEGACY_VERSIONS),
    Method("notifications/progress", LEGACY_VERSIONS, _PROGRESS_PARAMS),
    Method("notifications/roots/list_changed", LEGACY_VERSIONS),
    Method("notifications/tasks/status", (V2025_11_25,), _TASK),
)
"""Every notification that a client may send."""

SERVER_REQUEST_METHODS: Final = (
    Method("ping", LEGACY_VERSIONS),
    Method("sampling/createMessage", LEGACY_VERSIONS, capability="sampling"),
    Method("roots/list", LEGACY_VERSIONS, capability="roots"),
    Method("elicitation/create", (V2025_06_18, V2025_11_25), capability="elicitation"),
)
"""Every request that a server may send; a modern server sends none."""

SERVER_NOTIFICATION_METHODS: Final = (
    _CANCELLED,
    Method("notifications/progress", VERSIONS, _PROGRESS_PARAMS),
    Method("notifications/message", VERSIONS, (Param("level", str),)),
    Method("notifications/resources/updated", VERSIONS, _URI),
    Method("notifications/resources/list_changed", VERSIONS),
    Method("notifications/tools/list_changed", VERSIONS),
    Method("notifications/prompts/list_changed", VERSIONS),
    Method(ELICITATION_COMPLETE, (V2025_11_25,), (Param("elicitationId", str),)),
    Method("notifications/tasks/status", (V2025_11_25,), _TASK),
    Method("notifications/subscriptions/acknowledged", MODERN_VERSIONS),
    Method("notifications/tasks", MODERN_VERSIONS, _TASK),
)
"""Every notification that a server may send."""


def _by_version(methods: tuple[Method, ...]) -> MappingProxyType[tuple[str, str], Method]:
    return MappingProxyType(
        {(method.name, version): method for method in methods for version in method.versions}
    )


CLIENT_REQUESTS: Final = _by_version(CLIENT_REQUEST_METHODS)
CLIENT_NOTIFICATIONS: Final = _by_version(CLIENT_NOTIFICATION_METHODS)
SERVER_REQUESTS: Final = _by_version(SERVER_REQUEST_METHODS)
SERVER_NOTIFICATIONS: Final = _by_version(SERVER_NOTIFICATION_METHODS)

TARGET_PARAMS: Final = MappingProxyType(
    {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
)
"""The member of `params` that names the target of a call, by method."""

BATCH_VERSIONS: Final = (V2025_03_26,)
"""The one version in which a frame may hold several messages (removed in 2025-06-18)."""

FIELD_SINCE: Final = MappingProxyType(
    {
        "tool.annotations": V2025_03_26,
        "tool.title": V2025_06_18,
        "tool.outputSchema": V2025_06_18,
        "tool._meta": V2025_06_18,
        "tool.icons": V2025_11_25,
        "resource.title": V2025_06_18,
        "resource._meta": V2025_06_18,
        "resource.icons": V2025_11_25,
        "template.title": V2025_06_18,
        "template._meta": V2025_06_18,
        "template.icons": V2025_11_25,
        "prompt.title": V2025_06_18,
        "prompt._meta": V2025_06_18,
        "prompt.icons": V2025_11_25,
        "result.structuredContent": V2025_06_18,
        "content.audio": V2025_03_26,
        "content.resource_link": V2025_06_18,
        "elicitation.url": V2025_11_25,
        "elicitation.form": V2025_11_25,  # as a capability: forms are what it stood for before
        "sampling.tools": V2025_11_25,
        "sampling.context": V2025_11_25,  # as a capability: sampling included it before
        "sampling.content.list": V2025_11_25,
        "form.$schema": V2025_11_25,
        "form.array": V2025_11_25,
        "form.default": V2025_11_25,  # but of a boolean
        "form.oneOf": V2025_11_25,
        "implementation.title": V2025_06_18,
        "implementation.description": V2025_11_25,
        "implementation.icons": V2025_11_25,
        "implementation.websiteUrl": V2025_11_25,
    }
)
"""The version in which an optional field or content type appeared; older peers do not get it."""
