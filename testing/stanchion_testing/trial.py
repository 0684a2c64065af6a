"""One check's means: a server whose tools it holds in its hands, and a transport to open to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

import anyio

from stanchion import Call, Server, is_cancellation

from .connection import EraName
from .dialogue import Dialogue, TransportPeer

FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}

OpenTransport: TypeAlias = Callable[[Server], AbstractAsyncContextManager[TransportPeer]]
"""Serves a server over the transport to one client, and ends both when it is left.

The server may be started already; it then goes on when the transport has ended.
"""


class Unpaid(Exception):
    """Raised where a transport does not do what it owes; says what that is."""


def owes(holds: bool, duty: str) -> None:
    """Check one duty; no `assert`, which an optimised run leaves out.

    Raises:
        Unpaid: It does not hold.
    """
    if not holds:
        raise Unpaid(duty)


class Desk:
    """A server whose tools a check holds in its hands.

    Attributes:
        server: The server.
        started: Set when `hold` runs.
        release: Lets `hold` go on.
        stopped: Set when `hold` was cancelled, or `ask` left at a question.
    """

    def __init__(self) -> None:
        self.server = Server("contract", "1")
        self.started = anyio.Event()
        self.release = anyio.Event()
        self.stopped = anyio.Event()
        self.server.tool(name="echo")(_echo)
        self.server.tool(name="steps")(_steps)
        self.server.tool(name="big")(_big)
        self.server.tool(name="hold")(self._hold)
        self.server.tool(name="ask")(self._ask)

    def rearm(self) -> None:
        """Make the events new for another call of `hold`."""
        self.started, self.release, self.stopped = anyio.Event(), anyio.Event(), anyio.Event()

    async def _hold(self, call: Call) -> str:
        await call.progress(1)
        self.started.set()
        try:
            await self.release.wait()
        except BaseException as error:
            if is_cancellation(error):
                self.stopped.set()

            raise

        return "released"

    async def _ask(self, call: Call, text: str) -> str:
        try:
            await call.progress(1)
            said = await call.elicit(text, FORM, key="name")
            await call.progress(2)
            roots = await call.roots(key="roots")
            await call.progress(3)
        except BaseException:
            self.stopped.set()
            raise

        return f"{said.content and said.content['name']} {roots[0].uri}"


async def _echo(text: str) -> str:
    return text


async def _steps(call: Call, count: int) -> str:
    for step in range(1, count + 1):
        await call.progress(step, count)

    return "done"


async def _big(size: int) -> str:
    return "x" * size


class Trial:
    """A server of its own, and clients that talk to it over the transport.

    Attributes:
        desk: The server with its tools.
    """

    def __init__(self, open_transport: OpenTransport, era: EraName) -> None:
        self.desk = Desk()
        self._open = open_transport
        self._era: EraName = era

    async def talk(self, talk: Callable[[Dialogue], Awaitable[None]]) -> None:
        """Open the transport, have *talk* with a client of the era, and end the transport."""
        # Kept past the transport's task groups, which would wrap it.
        failure: BaseException | None = None
        async with self._open(self.desk.server) as peer:
            dialogue = Dialogue(peer, self._era)
            try:
                await dialogue.open()
                await talk(dialogue)
            except Exception as error:  # noqa: BLE001 # raised again below
                failure = error

        if failure is not None:
            raise failure

    async def echoes(self) -> None:
        """Check that another client is served by the same server."""

        async def talk(dialogue: Dialogue) -> None:
            owes(await dialogue.echoes("still here"), "the server serves the next client")

        await self.talk(talk)
