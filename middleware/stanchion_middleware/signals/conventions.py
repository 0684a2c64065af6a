"""The names of the semantic conventions for MCP, and our own, as tables.

The conventions are in development, so the names stand here rather than come from a package that
may drop them.

Source: OpenTelemetry semantic conventions for generative AI, "Model Context Protocol (MCP)".
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

Attribute: TypeAlias = str | int | float | bool
"""What an attribute of ours may be."""

SCHEMA: Final = "https://opentelemetry.io/schemas/1.41.0"
"""The version of the conventions in which these names were released last."""

METHOD: Final = "mcp.method.name"
VERSION: Final = "mcp.protocol.version"
SESSION: Final = "mcp.session.id"
RESOURCE: Final = "mcp.resource.uri"
REQUEST: Final = "jsonrpc.request.id"
STATUS_CODE: Final = "rpc.response.status_code"
ERROR_TYPE: Final = "error.type"
EXCEPTION_TYPE: Final = "exception.type"
OPERATION: Final = "gen_ai.operation.name"
TOOL: Final = "gen_ai.tool.name"
PROMPT: Final = "gen_ai.prompt.name"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
PROMPT_VARIABLE: Final = "gen_ai.prompt.variable."
TRANSPORT: Final = "network.transport"
PROTOCOL: Final = "network.protocol.name"
PROTOCOL_VERSION: Final = "network.protocol.version"
CLIENT_ADDRESS: Final = "client.address"
CLIENT_PORT: Final = "client.port"

EXECUTE_TOOL: Final = "execute_tool"

OUTCOME: Final = "stanchion.outcome"
CORRELATION: Final = "stanchion.correlation_id"
CONNECTION: Final = "stanchion.connection_id"
POLICY: Final = "stanchion.policy"
SERVER: Final = "stanchion.server"

OTHER: Final = "_OTHER"
"""What stands for every name that is not told apart, as the conventions have it elsewhere."""

NAMED_BY: Final[Mapping[str, str]] = MappingProxyType({"tool": TOOL, "prompt": PROMPT})
"""`{kind of target: attribute}`; what has a URI is not told apart by it."""

NAMING: Final[Mapping[str, str]] = MappingProxyType({"tools/call": TOOL, "prompts/get": PROMPT})
"""`{method: attribute}` of the methods that name such a target, whether it exists or not."""

NETWORK: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "stdio": {TRANSPORT: "pipe"},
        "http": {TRANSPORT: "tcp", PROTOCOL: "http"},
        "sse": {TRANSPORT: "tcp", PROTOCOL: "http"},
        "websocket": {TRANSPORT: "tcp", PROTOCOL: "websocket"},
    }
)
"""What is known of the network from a transport's name; nothing of others, such as memory."""

OPERATION_DURATION: Final = "mcp.server.operation.duration"
SESSION_DURATION: Final = "mcp.server.session.duration"
CALLS_ENDED: Final = "stanchion.calls.ended"
REFUSALS: Final = "stanchion.refusals"

BUCKETS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
"""The boundaries of both durations, in seconds."""
