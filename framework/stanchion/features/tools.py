"""Tools: `tools/list` and `tools/call`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..call import Call
from ..catalog import Encode, Entry
from ..chain import Next
from ..dry_run import not_simulated
from ..errors import UnknownTarget
from ..mirror import check_mirrors
from ..mount import may_hide
from ..protocol import Era
from ..results import PageResult, Result
from ..session import scope_of
from .feature import CompileTarget, Feature

if TYPE_CHECKING:
    from ..server import Server
    from ..tool import Tool


class Tools(Feature):
    """The tools of a server."""

    capability = "tools"

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.registered = server.tools.names
        self.methods = {"tools/list": self.list, "tools/call": self.unknown}
        self._entries = server.tools.entries

    def resolvers(self) -> Mapping[str, Callable[[Call], Entry[Any] | None]]:
        """Find the tool that a call names."""
        return {"tools/call": self._resolve}

    def open(self, compile: CompileTarget, encode: Encode) -> None:
        """Compile the chain of every tool."""
        server = self.server
        server.tools.open(
            server.chain,
            lambda tool: compile("tools/call", tool, self.call),
            encode,
            may_hide=may_hide(server, "tools/call"),
        )

    async def list(self, next: Next) -> PageResult:
        """Give a page of the tools that the caller may see."""
        call = next.call
        scope = scope_of(call)
        over = None if scope is None else scope.tools
        return self.server.tools.page(call, call.params.get("cursor"), over)

    def call(self, next: Next) -> Awaitable[Result]:
        """Run the tool that the call names; no coroutine itself, on the path of every call.

        Raises:
            NotSimulated: It is a dry run, whatever layers there are.
        """
        call = next.call
        tool: Tool = call.target  # pyright: ignore[reportAssignmentType] # compiled for tools
        if call.dry_run:
            raise not_simulated(self.server.chain, tool)

        if tool.mirrors and call.peer.era is Era.MODERN and _has_own_headers(call):
            # Here, not at the gate: a tool that is hidden from the caller must look like none.
            check_mirrors(tool.mirrors, call.peer.headers, call.params.get("arguments") or {})

        return tool.run(call, self.server.threads)

    async def unknown(self, next: Next) -> Result:
        """Refuse a name that matches no tool, once the chain for no target has let it through.

        Raises:
            UnknownTarget: Always.
        """
        raise UnknownTarget("tool", next.call.target_name or "")

    def _resolve(self, call: Call) -> Entry[Any] | None:
        name = call.target_name or ""
        connection = call.connection
        # Asked here first: most calls have no session, and this stands on the path of all.
        if connection is not None and connection.session is not None:
            scope = scope_of(call)
            entry = None if scope is None else scope.tools.get(name)
            if entry is not None:
                return entry

        return self._entries.get(name)


def _has_own_headers(call: Call) -> bool:
    """Say whether the call came as an HTTP request, and not as a message of a stream."""
    connection = call.connection
    return bool(call.peer.headers) and not (connection is not None and connection.headers)
