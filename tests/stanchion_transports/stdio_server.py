"""A server over stdio that tests start as a real process: `python stdio_server.py [WORD …]`.

Words: `early` prints before it serves, `timer` starts a thread that never ends, `trio` serves on
trio, `after` prints once `run` has returned.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import anyio

from stanchion import Server

words = set(sys.argv[1:])
server = Server("stdio-server", "1.0")
forever = threading.Event()


@server.tool
async def echo(text: str) -> str:
    """Give the text back."""
    return text


@server.tool
def add(a: int, b: int) -> int:
    """Add in a thread."""
    return a + b


@server.tool
def stick() -> str:
    """Never come back, in a thread."""
    sys.stderr.write("stuck\n")
    forever.wait()
    return "never"


@server.tool
async def hold() -> str:
    """Never come back, on the event loop."""
    sys.stderr.write("held\n")
    await anyio.sleep_forever()
    return "never"


@server.tool
async def cling() -> str:
    """Never come back, and take no cancellation."""
    sys.stderr.write("clinging\n")
    with anyio.CancelScope(shield=True):
        await anyio.sleep_forever()

    return "never"


@server.tool
async def block() -> str:
    """Never come back, and let nothing else run."""
    sys.stderr.write("blocking\n")
    forever.wait()
    return "never"


@server.tool
async def executor() -> str:
    """Never come back, in a thread that asyncio waits for at its end."""
    sys.stderr.write("waiting\n")
    await asyncio.to_thread(forever.wait)
    return "never"


@server.tool
async def noisy() -> str:
    """Print, let a child process print, and let another one read."""
    print("a stray print")  # noqa: T201 # what is tested
    sys.__stdout__.write("a print through the old sys.stdout\n")
    subprocess.run(["echo", "a print of a child"], check=True)
    got = subprocess.run(["cat"], check=True, capture_output=True).stdout
    return f"cat read {len(got)} bytes"


@server.tool
async def big(size: int) -> str:
    """Give a long text."""
    return "x" * size


if "early" in words:
    print("printed early, and still buffered", end="")  # noqa: T201 # what is tested

if "timer" in words:
    threading.Thread(target=forever.wait, name="a stuck timer").start()

server.run("stdio", backend="trio" if "trio" in words else "asyncio")

if "after" in words:
    sys.stderr.write("run has returned\n")
