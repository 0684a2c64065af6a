"""The end of a process: the watchdog, the signals and the stages."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from queue import SimpleQueue

import anyio
import pytest

from stanchion_transports.ending import ProcessEnd, StopSignals, Watchdog

LONG = 3600.0


@pytest.fixture
def ends():
    """Exit statuses with which the process would have been ended."""
    return SimpleQueue()


@pytest.fixture
def watchdog(ends):
    """A watchdog that writes to `ends`."""
    watchdog = Watchdog(ends.put)
    watchdog.start()
    yield watchdog
    watchdog.dismiss()
    watchdog._thread.join()


def test_the_watchdog_ends_the_process_when_time_is_up(watchdog, ends, caplog):
    """Once its time is up it says why, and ends the process with the status that was given."""
    watchdog.arm(0.0, 7, "nobody came")
    assert ends.get(timeout=20) == 7
    assert "nobody came" in caplog.text


def test_the_last_order_counts(watchdog, ends):
    """A later order replaces an earlier one, whether it is shorter or longer."""
    watchdog.arm(LONG, 1, "first")
    watchdog.arm(0.0, 2, "second")
    assert ends.get(timeout=20) == 2


def test_a_dismissed_watchdog_ends_nothing(ends):
    """After `dismiss` the process may take its time."""
    watchdog = Watchdog(ends.put)
    watchdog.start()
    watchdog.arm(LONG, 1, "never")
    watchdog.dismiss()
    watchdog._thread.join(20)
    assert not watchdog._thread.is_alive()
    assert ends.empty()


def test_a_stuck_log_does_not_hold_the_watchdog_up(watchdog, ends):
    """Where the log itself blocks, such as on a full pipe, the process ends all the same."""
    release = threading.Event()

    class Stuck(logging.Handler):
        def emit(self, record):
            release.wait()

    stuck = Stuck()
    logging.getLogger("stanchion.process").addHandler(stuck)
    try:
        watchdog.arm(0.0, 3, "the log is stuck")
        assert ends.get(timeout=20) == 3
    finally:
        release.set()
        logging.getLogger("stanchion.process").removeHandler(stuck)


async def test_the_first_signal_asks_and_the_second_ends(ends):
    """The first signal wakes who waits for it; the second ends the process as a shell shows it."""
    asked = []
    before = signal.getsignal(signal.SIGTERM)
    with StopSignals(lambda: asked.append("first"), ends.put) as signals:
        async with anyio.create_task_group() as group:
            group.start_soon(signals.watch, group.cancel_scope.cancel)
            await anyio.wait_all_tasks_blocked()
            os.kill(os.getpid(), signal.SIGTERM)

        assert asked == ["first"]
        assert ends.empty()
        signal.raise_signal(signal.SIGINT)
        assert ends.get(timeout=20) == 128 + signal.SIGINT

    assert signal.getsignal(signal.SIGTERM) is before


async def test_a_signal_that_another_thread_catches_is_seen(ends):
    """The kernel may hand a signal to any thread; the sleeping event loop is woken all the same."""
    asked = []
    with StopSignals(lambda: asked.append("first"), ends.put) as signals:
        async with anyio.create_task_group() as group:
            group.start_soon(signals.watch, group.cancel_scope.cancel)
            await anyio.wait_all_tasks_blocked()
            catcher = threading.Thread(
                target=lambda: signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
            )
            catcher.start()

    catcher.join()
    assert asked == ["first"]


async def test_other_signals_do_not_stop(ends):
    """The program's own handlers work on, and wake the loop for nothing."""
    handled = []
    before = signal.signal(signal.SIGUSR1, lambda *_: handled.append("theirs"))
    try:
        with StopSignals(lambda: ends.put("asked"), ends.put) as signals:
            async with anyio.create_task_group() as group:
                group.start_soon(signals.watch, lambda: ends.put("stopped"))
                await anyio.wait_all_tasks_blocked()
                signal.raise_signal(signal.SIGUSR1)
                await anyio.wait_all_tasks_blocked()
                group.cancel_scope.cancel()
    finally:
        signal.signal(signal.SIGUSR1, before)

    assert handled == ["theirs"]
    assert ends.empty()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_wakeup_of_the_programs_own_is_kept(ends, anyio_backend):
    """Where a tool has asyncio handle a signal, that still works afterwards."""
    loop = asyncio.get_running_loop()
    with StopSignals(lambda: ends.put("asked"), ends.put) as signals:
        async with anyio.create_task_group() as group:
            group.start_soon(signals.watch, lambda: ends.put("stopped"))
            await anyio.wait_all_tasks_blocked()
            seen = anyio.Event()
            loop.add_signal_handler(signal.SIGUSR1, seen.set)
            group.cancel_scope.cancel()

    try:
        signal.raise_signal(signal.SIGUSR1)
        await seen.wait()
    finally:
        loop.remove_signal_handler(signal.SIGUSR1)


def test_an_ignored_signal_stays_ignored(ends):
    """Under `nohup` a hang-up does not stop the server."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with StopSignals(lambda: ends.put("asked"), ends.put):
            signal.raise_signal(signal.SIGHUP)

        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)

    assert ends.empty()


@pytest.mark.parametrize("stage", ["of_input", "of_calls", "of_server"])
def test_a_stage_that_overruns_its_time_ends_the_process(ends, stage):
    """Calls, the closing of the server and the event loop each have a time of their own."""
    with ProcessEnd(0.0, 0.0, 0.0, ends.put) as end:
        getattr(end, stage)()
        assert ends.get(timeout=20) == (0 if stage == "of_server" else 1)


def test_a_signal_that_is_not_obeyed_ends_the_process(ends):
    """A server that does not stop after the first signal is ended."""
    with ProcessEnd(0.0, 0.0, 0.0, ends.put):
        signal.raise_signal(signal.SIGTERM)
        assert ends.get(timeout=20) == 1


def test_threads_that_are_left_do_not_hold_the_process_up(ends, caplog):
    """A thread that would keep the interpreter alive is named, and the process is ended."""
    release = threading.Event()
    thread = threading.Thread(target=release.wait, name="a stuck timer")
    thread.start()
    try:
        with ProcessEnd(LONG, LONG, LONG, ends.put) as end:
            end.of_input()

        assert ends.get(timeout=20) == 0
        assert "a stuck timer" in caplog.text
    finally:
        release.set()
        thread.join()


def test_nothing_is_ended_where_no_thread_is_left(ends):
    """After a clean end the program goes on as it likes, and the watchdog is gone."""
    with ProcessEnd(LONG, LONG, LONG, ends.put) as end:
        end.of_input()

    end._watchdog._thread.join(20)
    assert not end._watchdog._thread.is_alive()
    assert ends.empty()


def test_an_error_at_the_start_is_the_callers(ends):
    """Whoever catches an error from before the serving goes on, threads or not."""
    release = threading.Event()
    thread = threading.Thread(target=release.wait)
    thread.start()
    try:
        with (
            pytest.raises(RuntimeError, match="no server"),
            ProcessEnd(LONG, LONG, LONG, ends.put) as end,
        ):
            raise RuntimeError("no server")

        end._watchdog._thread.join(20)
        assert not end._watchdog._thread.is_alive()
        assert ends.empty()
    finally:
        release.set()
        thread.join()
