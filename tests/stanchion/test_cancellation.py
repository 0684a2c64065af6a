"""Telling a real cancellation from what only looks like one."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from stanchion import Server, is_cancellation
from stanchion_testing import connect

asyncio_alone = pytest.mark.parametrize("anyio_backend", ["asyncio"])
"""Trio has no tasks that are awaited, and no callbacks."""


async def cancellation():
    """Give what a cancelled task is raised, judged while the task is being cancelled."""
    with anyio.CancelScope() as scope:
        scope.cancel()
        try:
            await anyio.lowlevel.checkpoint()
        except BaseException as error:
            judged = [
                is_cancellation(error),
                is_cancellation(BaseExceptionGroup("x", [error, error])),
                is_cancellation(BaseExceptionGroup("x", [error, ValueError()])),
            ]
            raise

    return judged


async def test_of_the_running_task():
    """The cancellation of the running task is one, in a group if all of the group are."""
    assert await cancellation() == [True, True, False]


@pytest.mark.parametrize("error", [ValueError(), SystemExit(), KeyboardInterrupt()], ids=repr)
async def test_of_something_else(error):
    """Nothing else is one, within an event loop and without."""
    assert not is_cancellation(error)


def test_without_an_event_loop():
    """Where no loop runs nothing is cancelled."""
    assert not is_cancellation(ValueError())
    assert not is_cancellation(asyncio.CancelledError())


@asyncio_alone
async def test_of_a_task_that_somebody_else_cancelled():
    """Awaiting a task that was cancelled elsewhere looks like a cancellation and is none."""
    other = asyncio.create_task(anyio.sleep_forever())
    other.cancel()
    with pytest.raises(asyncio.CancelledError) as raised:
        await other

    assert not is_cancellation(raised.value)


@asyncio_alone
async def test_outside_a_task():
    """In a callback of the loop there is no task to ask, and the error is believed."""
    judged = []
    done = anyio.Event()

    def callback():
        judged.append(is_cancellation(asyncio.CancelledError()))
        done.set()

    asyncio.get_running_loop().call_soon(callback)
    await done.wait()
    assert judged == [True]


@asyncio_alone
async def test_call_that_awaits_a_cancelled_task():
    """A tool that trips over somebody else's cancellation is answered, as a crash."""
    server = Server("test")

    @server.tool
    async def trip():
        other = asyncio.create_task(anyio.sleep_forever())
        other.cancel()
        await other

    async with connect(server) as peer:
        assert (await peer.call_tool("trip")).is_error
