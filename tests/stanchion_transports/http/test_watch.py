"""The watch over running exchanges, in time that jumps."""

from __future__ import annotations

import logging

import anyio
import pytest

from stanchion import ConfigurationError
from stanchion_transports.http.watch import LOOK_EVERY, Watch


@pytest.fixture
def anyio_backend(jumping_time):
    """The watch needs no uvicorn, so it runs on trio too."""
    return jumping_time


class Watched:
    """An exchange that says what was done with it."""

    def __init__(self, silence=float("inf"), fails=False):
        self.seen = False
        self.watching = False
        self.silence = silence
        self.fails = fails
        self.signs = 0
        self.sent_at = anyio.current_time()
        self.disconnect = anyio.Event()
        self.disconnected = anyio.Event()

    async def watch_disconnect(self):
        """Wait for the client to go away."""
        if self.fails:
            raise OSError("a broken connection")

        await self.disconnect.wait()
        self.disconnected.set()

    def is_silent(self, now):
        """Say whether a sign of life is due."""
        return now - self.sent_at >= self.silence

    async def keep_alive(self):
        """Count a sign of life."""
        self.signs += 1
        self.sent_at = anyio.current_time()


async def test_a_short_exchange_costs_no_task():
    """One that is gone by the second look was never watched."""
    async with Watch() as watch:
        exchange = Watched()
        watch.add(exchange)
        await anyio.sleep(LOOK_EVERY * 1.5)
        assert exchange.seen
        assert not exchange.watching
        watch.discard(exchange)
        await anyio.sleep(LOOK_EVERY * 3)
        assert not exchange.watching


async def test_a_client_that_goes_away_is_noticed():
    """An exchange that lasts is watched, once."""
    async with Watch() as watch:
        exchange = Watched()
        watch.add(exchange)
        await anyio.sleep(LOOK_EVERY * 5)
        assert exchange.watching
        exchange.disconnect.set()
        await exchange.disconnected.wait()


async def test_signs_of_life_come_after_each_silence():
    """As many as there were silences, and none while something is sent."""
    async with Watch() as watch:
        silent, lively = Watched(silence=10), Watched(silence=10)
        watch.add(silent)
        watch.add(lively)
        for _ in range(7):
            await anyio.sleep(5)
            lively.sent_at = anyio.current_time()

        assert silent.signs == 3
        assert lively.signs == 0


async def test_it_sleeps_while_nothing_runs():
    """An idle server does nothing at all, and the next exchange wakes the watch."""
    async with Watch() as watch:
        for _ in range(2):
            exchange = Watched()
            watch.add(exchange)
            await anyio.sleep(LOOK_EVERY * 3)
            assert exchange.watching
            watch.discard(exchange)
            await anyio.sleep(LOOK_EVERY * 3)
            assert watch._asleep


async def test_a_broken_connection_does_not_end_the_watch(caplog):
    """What goes wrong with one exchange is logged, and the others are watched on."""
    caplog.set_level(logging.DEBUG, "stanchion.http")
    async with Watch() as watch:
        broken, whole = Watched(fails=True), Watched(silence=1)
        watch.add(broken)
        watch.add(whole)
        await anyio.sleep(3)
        assert whole.signs > 0

    assert "watching a connection failed" in caplog.text


async def test_it_can_be_started_again():
    """One application may be served twice, one time after the other."""
    watch = Watch()
    for _ in range(2):
        async with watch:
            exchange = Watched()
            watch.add(exchange)
            await anyio.sleep(LOOK_EVERY * 3)
            assert exchange.watching
            watch.discard(exchange)


async def test_nothing_is_watched_before_it_starts():
    """An application whose life nobody runs says so instead of missing clients that go away."""
    watch = Watch()
    with pytest.raises(ConfigurationError, match="lifespan"):
        watch.add(Watched())

    async with watch:
        pass

    with pytest.raises(ConfigurationError, match="lifespan"):
        watch.add(Watched())
