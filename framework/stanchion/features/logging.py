"""Log messages to the client: `logging/setLevel`; the messages are sent by `Call.log`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..chain import Next
from ..errors import InvalidParams
from ..log_floor import is_log_level
from ..protocol import LOG_LEVELS
from ..results import PlainResult, Result
from .feature import Feature

if TYPE_CHECKING:
    from ..server import Server


class Logging(Feature):
    """Whom log messages are sent to is decided per message; every server may send them.

    Source: MCP 2025-11-25, server/utilities/logging. In 2026-07-28 a request names its level in
    `_meta`, and the method is gone.
    """

    capability = "logging"

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.methods = {"logging/setLevel": self.set_level}
        self.registered = LOG_LEVELS

    async def set_level(self, next: Next) -> Result:
        """Keep the level that the client asks for, for its stream or session.

        Raises:
            InvalidParams: It is none of the eight.
            MethodNotFound: The client has no session that could keep it.
        """
        level: str = next.call.params["level"]
        if not is_log_level(level):
            raise InvalidParams(f"params.level must be one of {', '.join(LOG_LEVELS)}")

        next.call.log_floor.set(level)
        return PlainResult({})
