"""Questions to a legacy peer: requests of ours on the stream of the call that asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import anyio

from .asks import Ask
from .elicitation import ElicitUrl
from .errors import Unavailable, call_error_in
from .pending import Pending

if TYPE_CHECKING:
    from .call import Call


async def ask_legacy(
    call: Call, asks: Mapping[str, Ask[Any]]
) -> dict[str, tuple[dict[str, Any], Any]]:
    """Ask all of *asks* side by side; gives each answer as it came, and as its question reads it.

    Raises:
        AskFailed: The peer gave an error, or its answer does not fit.
        Unavailable: The peer cannot be asked here, or its version has no words for a question;
            nothing is sent.
    """
    # All of them before any is sent: what cannot be asked must not leave half of it asked.
    shaped = {key: ask.params_for(call.peer.version) for key, ask in asks.items()}
    answers: dict[str, tuple[dict[str, Any], Any]] = {}

    async def one(key: str, ask: Ask[Any]) -> None:
        answer = await _send(call, ask, shaped[key])
        answers[key] = answer, ask.read(answer)

    if len(asks) == 1:
        for key, ask in asks.items():
            await one(key, ask)

        return answers

    try:
        async with anyio.create_task_group() as group:
            for key, ask in asks.items():
                group.start_soon(one, key, ask)
    except BaseExceptionGroup as raised:
        known = call_error_in(raised)
        if known is None:
            raise

        raise known from None

    return {key: answers[key] for key in asks}


def expect_end(call: Call, page: ElicitUrl) -> None:
    """Have the peer of *call*, and nobody else, be told when *page* has done its work."""
    session = None if call.connection is None else call.connection.session
    if session is not None:
        session.expect(page.id)


async def _send(call: Call, ask: Ask[Any], params: Mapping[str, Any]) -> dict[str, Any]:
    connection, send = call.connection, call.send
    if connection is None or send is None:
        raise Unavailable("the client cannot be asked here", policy="asks")

    if connection.pending is None:
        connection.pending = Pending()

    if isinstance(ask, ElicitUrl):
        expect_end(call, ask)

    return await connection.pending.ask(send, ask.method, params)
