"""The life of a server and of its layers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from types import TracebackType
from typing import Any

import anyio

from .chain import Middleware


class SharedLife:
    """Enters a context for its first user and leaves it after its last.

    The context is left by the task of whoever goes last. A task group that it holds open must
    be left by the task that entered it, so such a context needs a first user that stays longest.
    """

    def __init__(self, make: Callable[[], AbstractAsyncContextManager[Any]]) -> None:
        """Take what makes the context, anew each time there is a first user."""
        self._make = make
        self._context: AbstractAsyncContextManager[Any] | None = None
        self._users = 0
        self._turn = anyio.Lock()

    async def enter(self) -> None:
        """Count one more user in, and enter the context if it is the first.

        Whoever comes while another enters it waits until it is entered.

        Raises:
            Exception: What entering the context raised; the user is not counted.
        """
        async with self._turn:
            if self._users == 0:
                context = self._make()
                await context.__aenter__()
                self._context = context

            self._users += 1

    async def leave(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Count a user out, and leave the context if it was the last."""
        # Shielded: a cancelled user must still be counted out.
        with anyio.CancelScope(shield=True):
            await self._turn.acquire()

        try:
            self._users -= 1
            if self._users == 0 and self._context is not None:
                context, self._context = self._context, None
                await context.__aexit__(kind, error, traceback)
        finally:
            self._turn.release()


async def open_layer(layer: Middleware, life: AsyncExitStack) -> None:
    """Open *layer* for as long as *life* lasts.

    Raises:
        Exception: What the layer raises, with a note that names it.
    """
    try:
        await life.enter_async_context(layer)
    except Exception as error:
        error.add_note(f"The layer {layer.name!r} did not open, so the server did not start.")
        raise
