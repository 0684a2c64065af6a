"""Telling a real cancellation from an exception that only looks like one."""

from __future__ import annotations

import asyncio
from typing import cast

import anyio


def is_cancellation(error: BaseException) -> bool:
    """Say whether *error* is the cancellation of the running task, which must always pass.

    A tool that awaits an asyncio task which somebody else cancelled also sees `CancelledError`,
    though nobody cancelled the call. Let through, that error would end the request without an
    answer, so it counts as an ordinary crash. An exception group is a cancellation only if
    everything in it is.

    Does not catch, clear or deliver anything.
    """
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return all(is_cancellation(inner) for inner in group.exceptions)

    if isinstance(error, asyncio.CancelledError):
        return _asyncio_task_is_cancelled()

    try:
        return isinstance(error, anyio.get_cancelled_exc_class())
    except anyio.NoEventLoopError:
        return False


def _asyncio_task_is_cancelled() -> bool:
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no asyncio loop runs here
        return False

    return task is None or task.cancelling() > 0
