"""The innermost layer of each method: what answers once the chain has let a call through."""

from __future__ import annotations

from collections.abc import Awaitable, Sized
from typing import TYPE_CHECKING, Any

from .chain import Layer, Next
from .errors import UnknownTarget
from .mirror import check_mirrors
from .protocol import (
    FIELD_SINCE,
    SUPPORTED_VERSIONS,
    Era,
    Method,
    at_least,
)
from .results import PageResult, PlainResult, Result, ToolResult

if TYPE_CHECKING:
    from .server import Server
    from .tool import Tool


class Handlers:
    """The handlers of a server; serving another method means adding one to `by_method`.

    Attributes:
        by_method: `{method: handler}` of everything that is served.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        # {capability: what is registered of it}; it is declared while there is some.
        self._announced: dict[str, Sized] = {"tools": server.catalog.names}
        self.by_method: dict[str, Layer] = {
            "initialize": self.initialize,
            "ping": self.ping,
            "server/discover": self.discover,
            "tools/list": self.list_tools,
            "tools/call": self.unknown_tool,
        }

    def capabilities(self) -> dict[str, Any]:
        """Give what the server can do, from what is registered."""
        return {name: {} for name, registered in self._announced.items() if registered}

    def serves(self, method: Method) -> bool:
        """Say whether the capability that announces *method* is declared."""
        if method.capability is None:
            return True

        return bool(self._announced.get(method.capability))

    async def initialize(self, next: Next) -> Result:
        """Answer the legacy handshake with the version that the gate negotiated."""
        version = next.call.peer.version
        fields: dict[str, Any] = {
            "protocolVersion": version,
            "capabilities": self.capabilities(),
            "serverInfo": implementation(self._server, version),
        }
        if self._server.instructions is not None:
            fields["instructions"] = self._server.instructions

        return PlainResult(fields)

    async def ping(self, next: Next) -> Result:
        """Answer a ping; the kernel answers before the chain, this names the method as served."""
        return PlainResult({})

    async def discover(self, next: Next) -> Result:
        """Answer a modern peer that asks what the server is."""
        fields: dict[str, Any] = {
            "supportedVersions": list(SUPPORTED_VERSIONS),
            "capabilities": self.capabilities(),
            "ttlMs": 0,
            "cacheScope": "public",
        }
        if self._server.instructions is not None:
            fields["instructions"] = self._server.instructions

        return PlainResult(fields)

    async def list_tools(self, next: Next) -> PageResult:
        """Give a page of the tools that the caller may see."""
        call = next.call
        return self._server.catalog.page(call, call.params.get("cursor"))

    def call_tool(self, next: Next) -> Awaitable[ToolResult]:
        """Run the tool that the call names; no coroutine itself, on the path of every call."""
        call = next.call
        target: Tool = call.target  # pyright: ignore[reportAssignmentType] # compiled for targets
        if target.mirrors and call.peer.headers and call.peer.era is Era.MODERN:
            # Here, not at the gate: a tool that is hidden from the caller must look like none.
            check_mirrors(target.mirrors, call.peer.headers, call.params.get("arguments") or {})

        return target.run(call, self._server.threads)

    async def unknown_tool(self, next: Next) -> Result:
        """Refuse a name that matches no tool, once the chain for no target has let it through.

        Raises:
            UnknownTarget: Always.
        """
        raise UnknownTarget("tool", next.call.target_name or "")


def implementation(server: Server, version: str) -> dict[str, Any]:
    """Describe *server* as a peer of *version* may know it."""
    fields: dict[str, Any] = {"name": server.name, "version": server.version}
    optional = {
        "title": server.title,
        "description": server.description,
        "websiteUrl": server.website_url,
        "icons": server.icons or None,
    }
    return fields | {
        field: value
        for field, value in optional.items()
        if value is not None and at_least(version, FIELD_SINCE[f"implementation.{field}"])
    }
