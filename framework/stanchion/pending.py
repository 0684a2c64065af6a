"""Questions to a legacy peer that wait for its answer.

Each is a request of ours on the stream of the call that asks. The map belongs to a connection,
or over HTTP to a session, so that an answer reaches only a call of the peer that gives it.

Source: MCP 2025-11-25, basic, "Responses"; basic/utilities/cancellation.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any

import anyio

from .errors import AskFailed, Unavailable
from .telling import Send
from .wire import Response, encode_notification, encode_request

MAX_PENDING = 128
"""Questions of one connection or session that are open at once."""

TAKE_BACK_LIMIT = 1.0
"""Seconds that telling the peer of a question nobody waits for any more may take."""

logger = logging.getLogger("stanchion.asks")


class _Waiter:
    __slots__ = ("arrived", "response")

    def __init__(self) -> None:
        self.arrived = anyio.Event()
        self.response: Response | None = None


class Pending:
    """The open questions to one peer."""

    __slots__ = ("_waiters",)

    def __init__(self) -> None:
        self._waiters: dict[str, _Waiter] = {}

    def __len__(self) -> int:
        return len(self._waiters)

    async def ask(self, send: Send, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and wait for its result, as long as the caller is not cancelled.

        A caller that stops waiting has the peer told so with `notifications/cancelled`.

        Raises:
            AskFailed: The peer answered with an error.
            Unavailable: Too many questions are open.
        """
        if len(self._waiters) >= MAX_PENDING:
            reason = "too many questions to the client are open"
            raise Unavailable(reason, policy="max_pending", retry_after=1.0)

        # Unguessable, so that nothing but having been asked lets a peer answer.
        id = os.urandom(12).hex()
        waiter = self._waiters[id] = _Waiter()
        try:
            await send(encode_request(id, method, params))
            await waiter.arrived.wait()
        finally:
            del self._waiters[id]
            if waiter.response is None:
                await _take_back(send, id)

        return _result_of(waiter.response)

    def take(self, response: Response) -> None:
        """Hand *response* to whoever waits for it; one that nobody waits for is dropped."""
        waiter = self._waiters.get(response.id) if isinstance(response.id, str) else None
        if waiter is not None and waiter.response is None:
            waiter.response = response
            waiter.arrived.set()


def _result_of(response: Response | None) -> dict[str, Any]:
    if response is not None and response.result is not None:
        return response.result

    error = {} if response is None or response.error is None else response.error
    code, message = error.get("code"), error.get("message")
    raise AskFailed(
        message if isinstance(message, str) else "the client gave no reason",
        code=code if type(code) is int else None,
    )


async def _take_back(send: Send, id: str) -> None:
    params = {"requestId": id, "reason": "the call that asked has ended"}
    # Shielded, because the call is being cancelled; bounded, because the peer may not read.
    with anyio.move_on_after(TAKE_BACK_LIMIT, shield=True):
        try:
            await send(encode_notification("notifications/cancelled", params))
        except Exception:
            # The stream may be what has ended; there is nobody to tell then.
            logger.debug("a question could not be taken back", exc_info=True)
