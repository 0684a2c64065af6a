"""Connects a peer to a server in the same process."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal, TypeAlias

import anyio

from stanchion import (
    LATEST_LEGACY_VERSION,
    LATEST_MODERN_VERSION,
    MODERN_VERSIONS,
    Principal,
    Server,
    is_cancellation,
)
from stanchion_transports.memory import open_memory

from .judge import Judge
from .peer import InMemoryPeer
from .respondent import Answer, Respondent

EraName: TypeAlias = Literal["modern", "legacy"]


@asynccontextmanager
async def connect(
    server: Server,
    *,
    era: EraName = "modern",
    version: str | None = None,
    client: Mapping[str, Any] | None = None,
    capabilities: Mapping[str, Any] | None = None,
    principal: Principal | None = None,
    answers: Mapping[str, Answer] | None = None,
    validate: bool = True,
) -> AsyncGenerator[InMemoryPeer]:
    """Start *server* and connect a peer to it in memory; legacy peers have shaken hands.

    Args:
        server: The server; it is started here, or used as it runs.
        era: `modern` or `legacy`.
        version: The exact version, instead of the era's latest.
        client: The peer's `clientInfo`.
        capabilities: The peer's capabilities; what *answers* need by default.
        principal: Who the transport finds the peer to be, or None.
        answers: `{method: result or callable}` for what the server asks, such as
            `{"elicitation/create": {"action": "accept", "content": {"name": "Ada"}}}`. With
            None the test answers by hand.
        validate: Whether everything that the server sends is held against the official models.

    Raises:
        ConfigurationError: The server is not servable.
        ValueError: *answers* has a method that no server asks for.
        Unanswered: The server asked what the test has no answer for, while nobody waited.
        Unofficial: The server sent what the models do not allow, while nobody waited.
        Exception: What the body raised, as it is and in no exception group.
    """
    chosen = version or (LATEST_MODERN_VERSION if era == "modern" else LATEST_LEGACY_VERSION)
    client = client or {"name": "stanchion-testing", "version": "1"}
    respondent = None if answers is None else Respondent(answers)
    if capabilities is None:
        capabilities = {} if respondent is None else respondent.capabilities

    judge = Judge(chosen) if validate else None
    # Kept past the task groups, which would wrap it and hide a failed test's own error.
    raised: BaseException | None = None
    async with (
        open_memory(server, principal=principal) as stream,
        anyio.create_task_group() as reading,
    ):
        peer = InMemoryPeer(
            stream, chosen, client, capabilities, respondent=respondent, judge=judge
        )
        reading.start_soon(peer.run, reading)
        try:
            if chosen not in MODERN_VERSIONS:
                await peer.handshake()

            yield peer
            peer.raise_failure()
        except BaseException as error:
            if is_cancellation(error):
                raise

            raised = error

        reading.cancel_scope.cancel()

    if raised is not None:
        raise raised
