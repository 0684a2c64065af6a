"""Tasks that outlive whoever starts them, within a life that any task may begin and end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from typing import Any, Self

import anyio
import anyio.abc


class Background:
    """A task group held open by a task of its own.

    A task group must be left by the task that entered it. A server is entered by its first
    transport and left by its last, which need not be the same task; so a task that belongs to
    neither holds the group, and both only speak to it.

    Leaving cancels what runs and waits until it has ended.
    """

    def __init__(self) -> None:
        self._group: anyio.abc.TaskGroup | None = None
        self._task: object = None

    @property
    def is_open(self) -> bool:
        """Whether tasks may be started."""
        return self._group is not None

    def start_soon(self, function: Callable[..., Coroutine[Any, Any, object]], *args: Any) -> None:
        """Run *function* beside everything else; it must let nothing but cancellation out.

        Raises:
            RuntimeError: The background is not open.
        """
        if self._group is None:
            raise RuntimeError("the background is not open")

        self._group.start_soon(function, *args)

    async def __aenter__(self) -> Self:
        """Start the task that holds the group."""
        self._stop, self._stopped = anyio.Event(), anyio.Event()
        opened = anyio.Event()
        self._spawn(opened)
        # Shielded: whoever is cancelled here must not leave the task behind. It opens at once.
        with anyio.CancelScope(shield=True):
            await opened.wait()

        return self

    async def __aexit__(self, *raised: object) -> None:
        """Cancel what runs, and wait until it has ended."""
        self._group = None
        self._stop.set()
        with anyio.CancelScope(shield=True):
            await self._stopped.wait()

    def _spawn(self, opened: anyio.Event) -> None:
        trio = sys.modules.get("trio")  # whoever runs on it has imported it
        if trio is not None and trio.lowlevel.in_trio_task():
            trio.lowlevel.spawn_system_task(self._hold, opened)
            return

        import asyncio  # trio does without it, and it is dear to import

        self._task = asyncio.get_running_loop().create_task(self._hold(opened))

    async def _hold(self, opened: anyio.Event) -> None:
        try:
            async with anyio.create_task_group() as group:
                self._group = group
                opened.set()
                await self._stop.wait()
                group.cancel_scope.cancel()
        finally:
            self._group = None
            self._stopped.set()
