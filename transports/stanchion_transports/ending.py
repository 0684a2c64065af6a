"""The end of a process that serves: on a signal, and in time.

A server whose client is gone must not stay behind as an orphan, whatever its tools have left
running: a thread that never returns, a timer, an event loop that is blocked.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from types import FrameType, TracebackType
from typing import Any, Final, Self

import anyio

logger = logging.getLogger("stanchion.process")

MARGIN: Final = 0.15
"""Seconds beyond each stage's own before the process is ended."""

LAST_WORDS: Final = 0.05
"""Seconds that threads have to end, and the log to say why the process is ended."""

PIPE_READ: Final = 4096

STOPPING_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class ProcessEnd:
    """Sees to it that the process ends in time; a context around the whole of its serving.

    Each stage of the end has its own time, and a stage that overruns it ends the process. If
    serving ended and threads that are no daemons are left, so does the way out of the program.
    """

    def __init__(
        self,
        grace: float,
        drain: float,
        closing: float,
        end_process: Callable[[int], Any] = os._exit,
    ) -> None:
        """Plan the end.

        Args:
            grace: Seconds that calls have after the end of the input.
            drain: Seconds that they have before that, after a signal.
            closing: Seconds that the server has to close.
            end_process: What is called with the exit status when time is up.
        """
        self._grace = grace
        self._drain = drain
        self._closing = closing
        self._watchdog = Watchdog(end_process)
        self._signals = StopSignals(self._on_signal, end_process)
        self._served = False
        self.watch_signals = self._signals.watch

    def __enter__(self) -> Self:
        """Take over the signals."""
        self._watchdog.start()
        self._signals.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._signals.__exit__(kind, error, traceback)
        # An error at the start is the caller's, who may go on.
        if self._served and (left := _threads_left()):
            self._watchdog.arm(MARGIN, 0 if error is None else 1, "threads are left")
            logger.warning("threads are left, which will not hold the process up: %s", left)
        else:
            self._watchdog.dismiss()

    def _on_signal(self) -> None:
        self._served = True
        limit = self._drain + self._grace + MARGIN
        self._watchdog.arm(limit, 1, "it did not end after a signal")

    def of_input(self) -> None:
        """Say that nothing more is read, and calls have their grace."""
        self._served = True
        self._watchdog.arm(self._grace + MARGIN, 1, "calls did not end in time")

    def of_calls(self) -> None:
        """Say that no call runs any more, and the server closes."""
        self._watchdog.arm(self._closing, 1, "the server did not close in time")

    def of_server(self) -> None:
        """Say that the server has closed, and only the event loop is left to end."""
        self._watchdog.arm(MARGIN, 0, "the event loop waits for threads")


def _threads_left() -> str:
    """Name the threads that hold an interpreter up at its end, after they had time to end."""
    deadline = time.monotonic() + LAST_WORDS
    for thread in _lasting_threads():
        thread.join(max(0.0, deadline - time.monotonic()))

    return ", ".join(thread.name for thread in _lasting_threads())


def _lasting_threads() -> list[threading.Thread]:
    main = threading.main_thread()
    return [each for each in threading.enumerate() if not each.daemon and each is not main]


class Watchdog:
    """A thread that ends the process if that does not end by itself in time."""

    def __init__(self, end_process: Callable[[int], Any] = os._exit) -> None:
        self._end_process = end_process
        # Its put is reentrant, so that a signal handler may arm the watchdog.
        self._orders: SimpleQueue[tuple[float, int, str] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._watch, name="stanchion watchdog", daemon=True)

    def start(self) -> None:
        """Begin to watch; nothing happens before `arm`."""
        self._thread.start()

    def arm(self, seconds: float, status: int, reason: str) -> None:
        """End the process with *status* in *seconds*; replaces what was said before.

        Args:
            seconds: From now.
            status: The exit status of the process.
            reason: What is waited for in vain, for the log.
        """
        self._orders.put((time.monotonic() + seconds, status, reason))

    def dismiss(self) -> None:
        """Watch no longer."""
        self._orders.put(None)

    def _watch(self) -> None:
        order = self._orders.get()
        while order is not None:
            deadline, status, reason = order
            try:
                order = self._orders.get(timeout=max(0.0, deadline - time.monotonic()))
            except Empty:
                self._log_end(reason)
                self._end_process(status)
                return

    def _log_end(self, reason: str) -> None:
        # In a thread of its own, as the log may be what is stuck.
        words = threading.Thread(
            target=logger.warning, args=("ending the process: %s", reason), daemon=True
        )
        with suppress(RuntimeError):  # Python 3.12 starts no thread once its main one has ended
            words.start()
            words.join(LAST_WORDS)


class StopSignals:
    """SIGTERM, SIGINT and SIGHUP: the first asks to stop, the second ends the process at once.

    A signal that is ignored stays ignored, as under `nohup`. Usable in the main thread only.
    """

    def __init__(
        self, on_first: Callable[[], Any], end_process: Callable[[int], Any] = os._exit
    ) -> None:
        self._on_first = on_first
        self._end_process = end_process
        self._seen = False
        self._before: dict[signal.Signals, Any] = {}
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._wake, False)

    async def watch(self, stop: Callable[[], Any]) -> None:
        """Call *stop* at the first signal, on the event loop; ends only when it is cancelled.

        The kernel may hand a signal to any thread, while Python handles it in the main one,
        which sleeps in the event loop. uvloop and trio have themselves woken; asyncio does not.
        """
        before = signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        if before != -1:
            signal.set_wakeup_fd(before)

        try:
            while True:
                await anyio.wait_readable(self._woken)
                os.read(self._woken, PIPE_READ)
                if self._seen:
                    stop()
        finally:
            now = signal.set_wakeup_fd(-1)
            if now != self._wake:
                signal.set_wakeup_fd(now)

    def __enter__(self) -> Self:
        """Handle the signals until the context ends."""
        for each in STOPPING_SIGNALS:
            if signal.getsignal(each) is not signal.SIG_IGN:
                self._before[each] = signal.signal(each, self._handle)

        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)

        os.close(self._woken)
        os.close(self._wake)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        # Runs between two instructions of the main thread, even where that blocks the loop.
        if self._seen:
            self._end_process(128 + number)
            return

        self._seen = True
        self._on_first()
        with suppress(BlockingIOError):  # it is full, so the loop is woken already
            os.write(self._wake, b"\0")
