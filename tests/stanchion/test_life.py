"""The shared life: the first user starts it, the last stops it."""

from __future__ import annotations

from contextlib import asynccontextmanager

import anyio
import pytest

from stanchion.life import SharedLife


class Recorder:
    """A context that notes when it is entered and left, and waits where it is told to."""

    def __init__(self):
        self.events = []
        self.gate = anyio.Event()
        self.gate.set()
        self.fails = False

    @asynccontextmanager
    async def context(self):
        await self.gate.wait()
        if self.fails:
            raise OSError("no disk")

        self.events.append("enter")
        try:
            yield
        finally:
            self.events.append("leave")


async def test_the_first_enters_and_the_last_leaves():
    """Users in between change nothing."""
    recorder = Recorder()
    life = SharedLife(recorder.context)
    await life.enter()
    await life.enter()
    await life.leave(None, None, None)
    assert recorder.events == ["enter"]
    await life.leave(None, None, None)
    assert recorder.events == ["enter", "leave"]


async def test_it_starts_again():
    """After its last user it may have a first one again, with a context made anew."""
    recorder = Recorder()
    life = SharedLife(recorder.context)
    for _ in range(2):
        await life.enter()
        await life.leave(None, None, None)

    assert recorder.events == ["enter", "leave"] * 2


async def test_who_comes_while_another_enters_waits():
    """No user is let in before the context is entered."""
    recorder = Recorder()
    recorder.gate = anyio.Event()
    life = SharedLife(recorder.context)
    entered = []

    async def enter(name):
        await life.enter()
        entered.append((name, list(recorder.events)))

    async with anyio.create_task_group() as users:
        users.start_soon(enter, "a")
        users.start_soon(enter, "b")
        await anyio.wait_all_tasks_blocked()
        assert entered == []
        recorder.gate.set()

    assert sorted(entered) == [("a", ["enter"]), ("b", ["enter"])]
    for _ in entered:
        await life.leave(None, None, None)


async def test_a_failed_start_counts_nobody():
    """The error is the user's, and the next one tries again."""
    recorder = Recorder()
    recorder.fails = True
    life = SharedLife(recorder.context)
    with pytest.raises(OSError, match="no disk"):
        await life.enter()

    recorder.fails = False
    await life.enter()
    await life.leave(None, None, None)
    assert recorder.events == ["enter", "leave"]


async def test_a_cancelled_user_is_counted_out():
    """Whoever leaves while cancelled does not keep the context open."""
    recorder = Recorder()
    life = SharedLife(recorder.context)
    with anyio.CancelScope() as scope:
        await life.enter()
        scope.cancel()
        try:
            await anyio.lowlevel.checkpoint()
        finally:
            await life.leave(None, None, None)

    assert recorder.events == ["enter", "leave"]


async def test_the_context_sees_why_its_last_user_leaves():
    """An error of the last user passes through the context, as in any `async with`."""
    seen = []

    @asynccontextmanager
    async def context():
        try:
            yield
        except ValueError as error:
            seen.append(error)
            raise

    life = SharedLife(context)
    await life.enter()
    error = ValueError("of the user")
    await life.leave(ValueError, error, None)
    assert seen == [error]
