"""Descriptors: private copies, and what is turned away meanwhile."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress

import anyio
import pytest

from stanchion_transports.descriptors import Sink, Source, claim


@contextmanager
def pipe():
    """Give the ends of a pipe, the first to read."""
    ends = os.pipe()
    try:
        yield ends
    finally:
        for end in ends:
            with suppress(OSError):  # the test has closed it
                os.close(end)


def same(one, two):
    return os.path.sameopenfile(one, two)


def test_the_stream_is_private_while_it_is_claimed():
    """Meanwhile stdin is the null device and stdout goes to stderr; afterwards all is as before."""
    with pipe() as (stdin, peer_out), pipe() as (peer_in, stdout):
        with claim(stdin, stdout) as (reading, writing):
            assert os.read(stdin, 10) == b""
            assert same(stdout, 2)
            assert not os.get_inheritable(reading)
            assert not os.get_inheritable(writing)
            assert min(reading, writing) > 2
            os.write(peer_out, b"asked")
            os.write(writing, b"answered")
            assert os.read(reading, 10) == b"asked"
            assert os.read(peer_in, 10) == b"answered"

        os.write(peer_out, b"later")
        assert os.read(stdin, 10) == b"later"
        assert not same(stdout, 2)
        assert not os.get_inheritable(stdin)
        for copy in (reading, writing):
            with pytest.raises(OSError, match="Bad file"):
                os.fstat(copy)


def test_a_closed_descriptor_is_an_error_and_nothing_is_left_open():
    """What cannot be claimed is left as it was."""
    with pipe() as (stdin, peer_out):
        os.close(closed := os.dup(stdin))
        with pytest.raises(OSError, match="Bad file"), claim(stdin, closed):
            pass

        os.write(peer_out, b"x")
        assert os.read(stdin, 1) == b"x"


@contextmanager
def moved(number):
    """Close descriptor *number* for a while."""
    saved = os.dup(number)
    os.close(number)
    try:
        yield
    finally:
        os.dup2(saved, number)
        os.close(saved)


def test_without_stderr_what_is_printed_is_dropped():
    """A server that was started with stderr closed never puts a stream in its place."""
    with pipe() as (stdin, _), pipe() as (peer_in, stdout), moved(2):
        with claim(stdin, stdout) as (reading, writing):
            assert 2 not in {reading, writing}
            os.write(stdout, b"dropped")

        os.set_blocking(peer_in, False)
        with pytest.raises(BlockingIOError):
            os.read(peer_in, 10)


class Printing:
    """A `sys.stdout` that is closed."""

    def flush(self):
        raise ValueError("I/O operation on closed file")


@pytest.mark.parametrize("stdout", [None, Printing()])
def test_a_closed_sys_stdout_is_no_obstacle(monkeypatch, stdout):
    """`sys.stdout` may be None or closed, and is put back all the same."""
    monkeypatch.setattr(sys, "stdout", stdout)
    with pipe() as (stdin, _):
        with claim(stdin, 1):
            assert sys.stdout is sys.stderr

        assert sys.stdout is stdout


async def test_the_null_device_ends_at_once():
    """`< /dev/null`, which no event loop can wait for, ends at once and takes all."""
    null = os.open(os.devnull, os.O_RDWR)
    try:
        assert await Source(null).read() == b""
        await Sink(null).write(b"{}")
    finally:
        os.close(null)


async def test_reading_stops_when_told():
    """`stop` ends the read that is waiting, and every later one."""
    with pipe() as (reading, _):
        source = Source(reading)
        got = []

        async def read():
            got.append(await source.read())

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            source.stop()

        assert got == [b""]
        assert await source.read() == b""


async def test_a_peer_that_set_nonblocking_mode_does_no_harm():
    """A full pipe is waited for though the shared mode says that nobody waits."""
    frame = b"x" * 200_000
    with pipe() as (reading, writing):
        os.set_blocking(reading, False)
        os.set_blocking(writing, False)
        source, sink = Source(reading), Sink(writing)
        got = b""
        async with anyio.create_task_group() as group:
            group.start_soon(sink.write, frame)
            while not got.endswith(b"\n"):
                got += await source.read()

    assert got == frame + b"\n"


async def test_a_frame_never_holds_a_newline():
    """White space between tokens may be a newline; on the wire it is a blank."""
    with pipe() as (reading, writing):
        await Sink(writing).write(b'{\n"a": 1}')
        assert os.read(reading, 100) == b'{ "a": 1}\n'


@pytest.mark.parametrize("begun", [True, False])
async def test_a_cancelled_write_is_whole_or_not_at_all(begun):
    """One that was cut off half way is finished by the next; one that had not begun is dropped."""
    with pipe() as (reading, writing):
        sink = Sink(writing)
        if not begun:
            while sink._writable.poll(0):
                os.write(writing, b"." * 4096)

        async with anyio.create_task_group() as group:
            group.start_soon(sink.write, b"a" * 200_000)
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()

        got = b""
        async with anyio.create_task_group() as group:
            group.start_soon(sink.write, b"next")
            while not got.endswith(b"next\n"):
                await anyio.wait_readable(reading)
                got += os.read(reading, 65536)

    assert got.lstrip(b".") == (b"a" * 200_000 + b"\n" if begun else b"") + b"next\n"


async def test_a_write_that_nobody_reads_is_an_error():
    """The broken pipe reaches the writer, also one that waits already."""
    with pipe() as (reading, writing):
        sink = Sink(writing)

        async def write():
            with pytest.raises(BrokenPipeError):
                await sink.write(b"a" * 200_000)

        async with anyio.create_task_group() as group:
            group.start_soon(write)
            await anyio.wait_all_tasks_blocked()
            os.close(reading)

        with pytest.raises(BrokenPipeError):
            await sink.write(b"again")
