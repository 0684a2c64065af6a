"""Extensions: what a server declares beside the protocol's capabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..protocol import V2026_07_28
from .feature import Feature

if TYPE_CHECKING:
    from ..server import Server


class Extensions(Feature):
    """The extensions of a server, for peers whose version has a place for them.

    Source: MCP 2026-07-28, basic/lifecycle, "Extension Negotiation".
    """

    capability = "extensions"
    since = V2026_07_28

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.registered = server.extensions

    def declare(self, version: str) -> dict[str, Any]:
        """Give `{extension: settings}`."""
        return dict(self.server.extensions)
