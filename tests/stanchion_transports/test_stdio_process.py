"""The stdio transport as a real process: its end, its streams, and the official client."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest

from .pipe_peer import call, cancel, text

PROGRAM = [sys.executable, str(Path(__file__).with_name("stdio_server.py"))]

PATIENCE = 30
"""Seconds after which a test gives a process up; nothing is measured against it."""


def answers(*lines, words=(), **options):
    """Run the program on *lines* as its whole input, and give its messages by id."""
    done = subprocess.run(
        [*PROGRAM, *words],
        input=b"".join(lines),
        capture_output=True,
        timeout=PATIENCE,
        check=True,
        **options,
    )
    frames = done.stdout.splitlines()
    assert all(frame.startswith(b"{") for frame in frames)
    return {message["id"]: message for message in map(orjson.loads, frames)}, done.stderr


def hang_up_is_heard():
    """Undo what a suite that runs under `nohup` hands on: a server obeys it too, and should."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@contextmanager
def program(*words, stdin=subprocess.PIPE):
    """Start the program; it is killed if it does not end by itself."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*PROGRAM, *words],
        stdin=stdin,
        stdout=pipe,
        stderr=pipe,
        preexec_fn=hang_up_is_heard,  # noqa: PLW1509 # nothing but this one system call
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ask(process, *lines):
    process.stdin.write(b"".join(lines))
    process.stdin.flush()


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_all_of_a_finished_input_is_answered(loop):
    """`printf requests | server` gets every answer, sync tools included, and status 0."""
    lines = [call(1, "add", a=1, b=2), b"nonsense\n", call(2, "echo", text="x")]
    found, stderr = answers(*lines, words=[loop, "after"])
    assert text(found[1]) == "3"
    assert text(found[2]) == "x"
    assert found[None]["error"]["code"] == -32700
    assert stderr == b"run has returned\n"


def test_prints_and_children_do_not_touch_the_stream():
    """Prints, early ones and those of a child too, go to stderr; a child reads nothing."""
    buffered = {key: text for key, text in os.environ.items() if key != "PYTHONUNBUFFERED"}
    found, stderr = answers(call(1, "noisy"), words=["early"], env=buffered)
    assert text(found[1]) == "cat read 0 bytes"
    for printed in (b"early", b"a stray print", b"old sys.stdout", b"print of a child"):
        assert printed in stderr


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
@pytest.mark.parametrize("tool", ["stick", "hold"])
def test_the_end_of_input_ends_the_process(loop, tool):
    """It ends although a tool never returns and a timer thread never does."""
    with program(loop, "timer") as process:
        ask(process, call(1, tool))
        assert process.stderr.readline()
        process.stdin.close()
        assert process.wait(PATIENCE) == 0
        assert b"a stuck timer" in process.stderr.read()


@pytest.mark.parametrize("tool", ["cling", "executor"])
def test_what_takes_no_cancellation_is_ended_with_the_process(tool):
    """Neither a shielded call nor a thread of the event loop's own pool holds the end up."""
    with program() as process:
        ask(process, call(1, tool))
        assert process.stderr.readline()
        process.stdin.close()
        process.wait(PATIENCE)
        assert b"ending the process" in process.stderr.read()


def test_a_closed_output_ends_the_process():
    """A client that is gone is noticed at the next write, even if the input stays open."""
    with program("timer") as process:
        process.stdout.close()
        ask(process, call(1, "echo", text="nobody reads"))
        assert process.wait(PATIENCE) == 0


@pytest.mark.parametrize("tool", ["hold", "stick"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_drains_and_ends(number, tool):
    """A call that does not end within the drain is answered a refusal, and the process ends."""
    with program("timer") as process:
        ask(process, call(1, tool))
        assert process.stderr.readline()
        process.send_signal(number)
        message = orjson.loads(process.stdout.readline())
        assert message["error"]["code"] == 503
        assert process.wait(PATIENCE) == 0


def test_a_blocked_event_loop_obeys_signals():
    """Even a tool that blocks the loop does not keep the process from ending."""
    with program() as process:
        ask(process, call(1, "block"))
        assert process.stderr.readline() == b"blocking\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 1


def test_a_burst_with_interleaved_cancels_leaves_the_server_alive():
    """After rapid calls and cancels every other call is answered, and the next one too."""
    lines = []
    for id in range(0, 30, 3):
        lines += [call(id, "hold"), call(id + 1, "add", a=id, b=1), call(id + 2, "echo", text="x")]
        lines.append(cancel(id))

    with program() as process:
        ask(process, *lines)
        found = {orjson.loads(process.stdout.readline())["id"] for _ in range(20)}
        assert found == {id for id in range(30) if id % 3}
        ask(process, call("last", "echo", text="alive"))
        assert text(orjson.loads(process.stdout.readline())) == "alive"
        process.stdin.close()
        assert process.wait(PATIENCE) == 0


def test_five_mebibytes_reach_a_slow_reader():
    """A result far beyond what a pipe holds arrives whole, in small sips."""
    size = 5 << 20
    with program() as process:
        ask(process, call(1, "big", size=size))
        got = bytearray()
        while not got.endswith(b"\n"):
            got += os.read(process.stdout.fileno(), 7919)

        assert len(text(orjson.loads(bytes(got)))) == size


def test_an_empty_input_ends_the_process():
    """`server < /dev/null` ends at once and writes nothing."""
    with program(stdin=subprocess.DEVNULL) as process:
        stdout, _ = process.communicate(timeout=PATIENCE)
        assert stdout == b""
        assert process.returncode == 0


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28", "auto"])
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_official_client_lists_and_calls(mode, anyio_backend, tmp_path):
    """The `mcp` client is served in both eras, and finds the newer one by itself."""
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    parameters = StdioServerParameters(command=PROGRAM[0], args=PROGRAM[1:])
    with (tmp_path / "stderr").open("w") as errors:
        async with Client(stdio_client(parameters, errors), mode=mode) as client:
            assert client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
            listed = await client.list_tools()
            assert "add" in {tool.name for tool in listed.tools}
            result = await client.call_tool("add", {"a": 20, "b": 22})
            assert result.structured_content == {"result": 42}
            result = await client.call_tool("noisy", {})
            assert result.content[0].text == "cat read 0 bytes"
            result = await client.call_tool("add", {"a": "no number"})
            assert result.is_error


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_official_session_lists_and_calls(anyio_backend, tmp_path):
    """The older way, a `ClientSession` over `stdio_client`, is served too."""
    from mcp import ClientSession
    from mcp.client.stdio import StdioServerParameters, stdio_client

    parameters = StdioServerParameters(command=PROGRAM[0], args=PROGRAM[1:])
    with (tmp_path / "stderr").open("w") as errors:
        async with (
            stdio_client(parameters, errors) as (reading, writing),
            ClientSession(reading, writing) as session,
        ):
            await session.initialize()
            assert "echo" in {tool.name for tool in (await session.list_tools()).tools}
            result = await session.call_tool("echo", {"text": "over stdio"})
            assert result.content[0].text == "over stdio"
