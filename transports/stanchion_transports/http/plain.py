"""One POST's answer where there are no streams: one JSON body, whatever happens before it."""

from __future__ import annotations

from stanchion import Reply

from .exchange import Exchange, send_plain


class Plain(Exchange):
    """An exchange that never commits a stream; what belongs to a call is not sent."""

    streams = False

    async def finish(self, reply: Reply, *, may_be_empty: bool = False) -> None:
        """Send the answer; a cancelled request, which has none, gets an empty 204."""
        if reply.parts or may_be_empty:
            await super().finish(reply, may_be_empty=may_be_empty)
        else:
            self._ended = True
            await send_plain(self._send, 204)

    def is_silent(self, now: float) -> bool:
        """Say that no sign of life is ever due, because none can be sent."""
        return False
