"""File descriptors on an event loop: read and written without blocking it.

A pipe, a socket or a terminal is waited for by the loop; what a loop cannot wait for, such as a
regular file, is read and written in a worker thread. `O_NONBLOCK` is never set: it belongs to
the open file that other processes share, and would break theirs.
"""

from __future__ import annotations

import fcntl
import os
import select
import stat
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from typing import Final

import anyio
import anyio.to_thread

READ_SIZE: Final = 65536
"""Bytes of one read: what a pipe holds on Linux."""

WRITE_SIZE: Final = 4096
"""Bytes of one write: a pipe that is writable takes so many without blocking.

It is `PIPE_BUF` on Linux; POSIX.1-2024, `write`, and Linux's pipe(7).
"""

LOWEST_PRIVATE: Final = 3
"""Private copies stay above standard error, even where one of the three was closed."""


@contextmanager
def claim(stdin: int, stdout: int) -> Generator[tuple[int, int]]:
    """Give private copies of *stdin* and *stdout*, and turn these two away meanwhile.

    While the context lasts, descriptor *stdin* is the null device and *stdout* goes to standard
    error, so that neither a stray `print` nor a child process can touch the stream. If *stdout*
    is 1, `sys.stdout` goes to `sys.stderr` too, with whatever it had still buffered.

    Raises:
        OSError: A descriptor is not open.
    """
    with ExitStack() as undo:
        for number in (stdin, stdout):
            os.fstat(number)  # else the copy of one could take the closed number of the other

        copies = tuple(_private_copy(number, undo) for number in (stdin, stdout))
        # Where standard error was closed, this takes its number.
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        undo.callback(os.close, null)
        undo.enter_context(_turned(stdin, null, back=copies[0]))
        undo.enter_context(_turned(stdout, 2, back=copies[1]))
        if stdout == 1:
            undo.enter_context(_print_to_stderr())

        yield copies[0], copies[1]


def _private_copy(number: int, undo: ExitStack) -> int:
    copy = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, LOWEST_PRIVATE)
    undo.callback(os.close, copy)
    return copy


@contextmanager
def _turned(number: int, target: int, *, back: int) -> Generator[None]:
    inheritable = os.get_inheritable(number)
    os.dup2(target, number, inheritable)
    try:
        yield
    finally:
        os.dup2(back, number, inheritable)


@contextmanager
def _print_to_stderr() -> Generator[None]:
    printing = sys.stdout

    def flush() -> None:
        # It may be None, closed, or on a standard error that nobody reads any more.
        with suppress(AttributeError, ValueError, OSError):
            printing.flush()

    flush()
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        flush()


def can_wait_for(descriptor: int) -> bool:
    """Say whether every event loop can wait for *descriptor*: epoll refuses files and /dev/null."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)


class Source:
    """Reads a descriptor until it ends or is told to stop. Does not close it."""

    def __init__(self, descriptor: int) -> None:
        self.stopped = False
        self._descriptor = descriptor
        self._waits = can_wait_for(descriptor)
        self._thread = anyio.CapacityLimiter(1)  # never behind the tools' threads
        self._scope = anyio.CancelScope()

    async def read(self) -> bytes:
        """Give the next bytes, at most `READ_SIZE`; empty at the end, or once stopped.

        Raises:
            OSError: The descriptor cannot be read.
        """
        if self.stopped:
            return b""

        with anyio.CancelScope() as self._scope:
            if not self._waits:
                return await anyio.to_thread.run_sync(
                    os.read,
                    self._descriptor,
                    READ_SIZE,
                    abandon_on_cancel=True,
                    limiter=self._thread,
                )

            while True:
                await anyio.wait_readable(self._descriptor)
                # Where the peer has set O_NONBLOCK, readable may be a false alarm.
                with suppress(BlockingIOError):
                    return os.read(self._descriptor, READ_SIZE)

        return b""

    def stop(self) -> None:
        """End the reading: also a `read` that is waiting now."""
        self.stopped = True
        self._scope.cancel()


class Sink:
    """Writes lines to a descriptor, each whole or not at all. Does not close it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._waits = can_wait_for(descriptor)
        self._thread = anyio.CapacityLimiter(1)
        self._writable = select.poll()
        self._writable.register(descriptor, select.POLLOUT)
        self._rest = memoryview(b"")

    async def write(self, frame: bytes) -> None:
        """Write *frame* as one line; called by one task at a time.

        A write that is cancelled before its first byte leaves nothing; one that is cancelled
        later is finished by the next, so a call that ends while its notification is half
        written does not break the stream.

        Raises:
            OSError: The descriptor cannot be written, such as when nobody reads it any more.
        """
        # In JSON, a raw newline can only be white space between two tokens.
        line = (frame.replace(b"\n", b" ") if b"\n" in frame else frame) + b"\n"
        await self._finish()
        self._rest = memoryview(line)
        try:
            await self._finish()
        except BaseException:
            if len(self._rest) == len(line):
                self._rest = memoryview(b"")

            raise

    async def _finish(self) -> None:
        if self._rest and not self._waits:
            await anyio.to_thread.run_sync(self._write_all, limiter=self._thread)

        while self._rest:
            # Asking first spares a trip through the loop, which a pipe seldom needs.
            if not self._writable.poll(0):
                await anyio.wait_writable(self._descriptor)

            with suppress(BlockingIOError):  # O_NONBLOCK again
                self._write_some()

    def _write_all(self) -> None:
        while self._rest:
            self._write_some()

    def _write_some(self) -> None:
        written = os.write(self._descriptor, self._rest[:WRITE_SIZE])
        self._rest = self._rest[written:]
