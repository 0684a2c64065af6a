"""Shared life: what is opened and closed together with what it is a part of."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from types import TracebackType
from typing import Any, Self


class SharedLife:
    """The base of what opens and closes its parts with itself, each time that it is entered.

    Attributes:
        parts: What is entered with it, in this order, and left with it, the last first.
    """

    parts: Sequence[AbstractAsyncContextManager[Any, Any]] = ()
    _lives: tuple[AsyncExitStack, ...] = ()  # here, so that no subclass must call an __init__

    async def __aenter__(self) -> Self:
        """Open the parts; where one does not open, those before it are closed again."""
        async with AsyncExitStack() as life:
            for part in self.parts:
                await life.enter_async_context(part)

            self._lives = (*self._lives, life.pop_all())

        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the parts."""
        if not self._lives:  # a subclass has an `__aenter__` of its own, and no parts
            return

        *others, life = self._lives
        self._lives = tuple(others)
        await life.__aexit__(kind, error, trace)
