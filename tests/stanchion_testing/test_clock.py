"""Time that a test holds in its hand."""

from __future__ import annotations

import threading
import time

import anyio
import pytest

from stanchion_testing import FakeClock, JumpingEventLoop, jumping_backend


@pytest.fixture
def anyio_backend(jumping_time):
    """Time jumps in this module."""
    return jumping_time


def test_fake_clock(fake_clock):
    """A fake clock stands still until it is advanced; the plugin's fixture is one."""
    assert isinstance(fake_clock, FakeClock)
    assert fake_clock() == fake_clock() == 0.0
    fake_clock.advance(1.5)
    fake_clock.advance(0)
    assert fake_clock() == fake_clock.now == 1.5
    assert FakeClock(9.0)() == 9.0


def test_fake_clock_goes_forward():
    """Time does not go backwards."""
    clock = FakeClock(5)
    with pytest.raises(ValueError):
        clock.advance(-1)

    assert clock() == 5


async def test_an_hour_is_nothing():
    """A sleep of an hour returns at once, and the loop's time shows the hour."""
    real = time.monotonic()
    before = anyio.current_time()
    await anyio.sleep(3600)
    assert anyio.current_time() - before >= 3600
    assert time.monotonic() - real < 3600


async def test_deadlines_come_in_order():
    """Timers fire in the order of their deadlines, whatever order they were made in."""
    fired = []

    async def wait(seconds):
        await anyio.sleep(seconds)
        fired.append(seconds)

    async with anyio.create_task_group() as group:
        for seconds in (300, 1, 60, 2):
            group.start_soon(wait, seconds)

    assert fired == [1, 2, 60, 300]


async def test_deadline_of_what_hangs():
    """A deadline ends what would never end."""
    with anyio.move_on_after(3600) as scope:
        await anyio.sleep_forever()

    assert scope.cancelled_caught


async def test_time_stands_while_something_runs():
    """Time does not jump while a task can run."""
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep, 3600)
        before = anyio.current_time()
        for _ in range(50):
            await anyio.lowlevel.checkpoint()

        assert anyio.current_time() - before < 3600


async def test_thread_that_outlives_a_deadline():
    """Time jumps while a thread is busy, so that a deadline needs no real time."""
    release = threading.Event()

    def hold():
        release.wait(10)

    with anyio.move_on_after(3600) as scope:
        await anyio.to_thread.run_sync(hold, abandon_on_cancel=True)

    release.set()
    assert scope.cancelled_caught


def test_backends():
    """The backends are asyncio on the jumping loop, and trio on a clock that jumps."""
    name, options = jumping_backend("asyncio")
    assert (name, options) == ("asyncio", {"loop_factory": JumpingEventLoop})
    name, options = jumping_backend("trio")
    assert name == "trio"
    assert options["clock"] is not jumping_backend("trio")[1]["clock"]
