"""The life of an ASGI application, as a context.

Source: ASGI 3.0, "Lifespan protocol".
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio

from stanchion import ConfigurationError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message

logger = logging.getLogger("stanchion.http")


@asynccontextmanager
async def running_life(app: ASGIApp) -> AsyncGenerator[Mapping[str, Any]]:
    """Start *app*, give the state that it wants its requests to have, and end it.

    An application that knows no lifespan is used as it is.

    Raises:
        ConfigurationError: The application said that it cannot start.
    """
    life = _Life(app)
    # Raised outside of the group, which would wrap it.
    failure: Exception | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(life.run)
        await life.started.wait()
        if life.problem is None:
            try:
                yield life.state
            except Exception as error:  # noqa: BLE001 # raised again below
                failure = error

        life.ending.set()

    if failure is not None:
        raise failure

    if life.problem is not None:
        raise ConfigurationError(f"an application did not start or end well: {life.problem}")


class _Life:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._told = False
        self.state: dict[str, Any] = {}
        self.started = anyio.Event()
        self.ending = anyio.Event()
        self.problem: str | None = None

    async def run(self) -> None:
        scope = {
            "type": "lifespan",
            "asgi": {"version": "3.0", "spec_version": "2.0"},
            "state": self.state,
        }
        try:
            await self._app(scope, self._receive, self._send)
        except Exception as error:
            # Before it has started, this is how an application says that it has no lifespan.
            if self.started.is_set() and self.problem is None:
                self.problem = repr(error)

            logger.debug("an application's lifespan raised", exc_info=True)
        finally:
            self.started.set()

    async def _receive(self) -> Message:
        if not self._told:
            self._told = True
            return {"type": "lifespan.startup"}

        await self.ending.wait()
        return {"type": "lifespan.shutdown"}

    async def _send(self, event: Message) -> None:
        if event["type"].endswith(".failed"):
            self.problem = event.get("message") or event["type"]

        self.started.set()
