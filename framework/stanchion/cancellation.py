"""Telling a real cancellation from an exception that only looks like one."""

from __future__ import annotations

import sys
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
    # A stack of its own: groups may be nested deeper than Python's.
    pending = [error]
    while pending:
        inner = pending.pop()
        if isinstance(inner, BaseExceptionGroup):
            pending.extend(cast("BaseExceptionGroup[BaseException]", inner).exceptions)
        elif not _is_sole_cancellation(inner):
            return False

    return True


def _is_sole_cancellation(error: BaseException) -> bool:
    asyncio = sys.modules.get("asyncio")  # trio does without it, and it is dear to import
    if asyncio is not None and isinstance(error, asyncio.CancelledError):
        return _asyncio_task_is_cancelled()

    try:
        return isinstance(error, anyio.get_cancelled_exc_class())
    except anyio.NoEventLoopError:
        # A coroutine that is closed after its loop has ended must not go on.
        return isinstance(error, GeneratorExit)


def _asyncio_task_is_cancelled() -> bool:
    import asyncio

    try:
        task = asyncio.current_task()
    except RuntimeError:  # no asyncio loop runs here
        return False

    return task is None or task.cancelling() > 0
