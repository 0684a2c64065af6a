"""GET: the stream of a legacy session, opened anew or where it was lost.

Source: MCP 2025-11-25, basic/transports, "Listening for Messages from the Server" and
"Resumability and Redelivery".
"""

from __future__ import annotations

import math
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING

import anyio

from stanchion import (
    NO_REPLY,
    Connection,
    Era,
    EventStore,
    InvalidRequest,
    Principal,
    Server,
    Unavailable,
)

from .exchange import send_fault, turn_away
from .guard import EVENT_STREAM, Problem, accepts
from .headers import Headers
from .legacy import Legacy, join
from .resumable import read_event_id
from .sessions import LiveSession, Sessions
from .standing import Resumed, Standing
from .watch import Watch

if TYPE_CHECKING:
    from starlette.types import Receive, Send

LAST_EVENT = "last-event-id"

MAX_RESUMED = 1000
"""Answers that are resumed at once; each holds a connection."""

GONE = "The stream cannot be resumed here: it has ended long ago, or is of another session"
MALFORMED = "Last-Event-ID is none that this server gave"
NOT_ACCEPTABLE = Problem(406, f"Accept must include {EVENT_STREAM}")


class Streams:
    """Serves GET; made by `app` where sessions have streams."""

    def __init__(
        self,
        server: Server,
        *,
        legacy: Legacy,
        sessions: Sessions,
        store: EventStore,
        watch: Watch,
        keep_alive: float,
    ) -> None:
        self._server = server
        self._legacy = legacy
        self._sessions = sessions
        self._store = store
        self._watch = watch
        self._keep_alive = keep_alive
        self._resumed = 0

    async def get(
        self, headers: Headers, connection: Connection, receive: Receive, send: Send
    ) -> None:
        """Open the stream that the request asks for.

        Raises:
            Unavailable: Too much is open.
        """
        if not accepts(headers.get("accept", "*/*"), EVENT_STREAM):
            await turn_away(send, NOT_ACCEPTABLE)
            return

        session = await self._legacy.session_of(headers, connection.principal, send)
        if session is None:
            return

        last_seen = read_event_id(headers[LAST_EVENT]) if LAST_EVENT in headers else None
        if LAST_EVENT in headers and last_seen is None:
            await send_fault(send, InvalidRequest(MALFORMED), Era.LEGACY)
            return

        session = self._sessions.enter(session)
        try:
            join(session, connection, headers, hears=True)
            if last_seen is None or last_seen[0].startswith(Standing.prefix):
                standing = Standing(receive, send, self._keep_alive, connection)
                standing.bind(session, self._store)
                standing.missed = last_seen
                await self._stand(standing, session)
            elif await self._store.after(session.id, *last_seen) is None:
                await send_fault(send, InvalidRequest(GONE), Era.LEGACY, status=410)
            else:
                resumed = Resumed(receive, send, self._keep_alive, connection)
                await self._resume(resumed, session, *last_seen)

        finally:
            self._sessions.leave(session)

    async def _stand(self, standing: Standing, session: LiveSession) -> None:
        connection = standing.connection
        reply = NO_REPLY
        self._watch.add(standing)
        try:
            with anyio.move_on_after(self._sessions.remaining(session)) as standing.scope:
                reply = await self._server.listen(connection, send=standing.notify)

            await standing.finish(reply)
        finally:
            self._watch.discard(standing)

    async def _resume(
        self, resumed: Resumed, session: LiveSession, stream: str, number: int
    ) -> None:
        if self._resumed >= MAX_RESUMED:
            reason = "too many streams are resumed"
            raise Unavailable(reason, policy="max_resumed", retry_after=1.0)

        self._resumed += 1
        self._watch.add(resumed)
        try:
            lost = session.lost.get(stream)
            proved = _remaining(resumed.connection.principal)
            limit = min(self._sessions.remaining(session), proved)
            with (
                anyio.move_on_after(limit) as resumed.scope,
                nullcontext() if lost is None else lost.followed(),
            ):
                await resumed.follow(self._store, session, stream, number)

            await resumed.close()
        finally:
            self._watch.discard(resumed)
            self._resumed -= 1


def _remaining(principal: Principal | None) -> float:
    """Give the seconds for which what *principal* has proved is good, infinite for ever."""
    if principal is None or principal.expires_at is None:
        return math.inf

    return max(0.0, principal.expires_at - time.time())
