"""A task group that one task opens and another may close."""

from __future__ import annotations

import anyio
import pytest

from stanchion.background import Background


async def test_what_is_started_runs_beside_and_is_cancelled_at_the_end():
    """Leaving cancels what runs, and waits for it."""
    seen = []

    async def run(name):
        seen.append(name)
        try:
            await anyio.sleep_forever()
        finally:
            seen.append(f"{name} ended")

    async with Background() as background:
        background.start_soon(run, "one")
        await anyio.wait_all_tasks_blocked()
        assert seen == ["one"]

    assert seen == ["one", "one ended"]


async def test_another_task_may_leave_it():
    """The task that enters is gone when another leaves; no task group could bear that."""
    background = Background()
    async with anyio.create_task_group() as group:
        group.start_soon(background.__aenter__)

    assert background.is_open
    async with anyio.create_task_group() as group:
        group.start_soon(background.__aexit__)

    assert not background.is_open


async def test_whoever_enters_may_be_cancelled():
    """The task behind it is there all the same, and can be ended."""
    background = Background()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await background.__aenter__()

    assert background.is_open
    with anyio.CancelScope() as scope:
        scope.cancel()
        await background.__aexit__()

    assert not background.is_open


async def test_nothing_starts_where_it_is_not_open():
    """Before it is entered and after it was left."""
    background = Background()
    with pytest.raises(RuntimeError, match="not open"):
        background.start_soon(anyio.sleep, 0)

    async with background:
        pass

    with pytest.raises(RuntimeError, match="not open"):
        background.start_soon(anyio.sleep, 0)


async def test_it_may_be_entered_again():
    """A server that stopped may start once more."""
    background, ran = Background(), []

    async def run():
        ran.append(True)

    for _ in range(2):
        async with background:
            background.start_soon(run)
            await anyio.wait_all_tasks_blocked()

    assert ran == [True, True]
