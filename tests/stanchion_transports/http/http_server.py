"""A server over HTTP that tests start as a real process: `python http_server.py PORT [WORD …]`.

Words: `short` gives calls no time to end after a signal, `long` gives them an hour, `slow` takes
for ever to close, `timer` starts a thread that never ends.
"""

from __future__ import annotations

import logging
import sys
import threading
from contextlib import asynccontextmanager

import anyio
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from stanchion import Call, Server

port, words = int(sys.argv[1]), set(sys.argv[2:])
forever = threading.Event()
logging.basicConfig(stream=sys.stderr, level=logging.INFO)


class Slow(Server):
    """A server whose end takes longer than anybody waits."""

    @asynccontextmanager
    async def lifespan(self):
        yield
        if "slow" in words:
            sys.stderr.write("closing\n")
            forever.wait()


server = Slow("http-server", "1.0")
holding = []


@server.tool
async def hold(call: Call, told: bool = False) -> str:
    """Wait until `/release` is asked for, or the call is stopped."""
    released = anyio.Event()
    holding.append(released)
    if told:
        await call.progress(1)

    sys.stderr.write("held\n")
    await released.wait()
    return "released"


async def release(request):
    """Let the call of `hold` go on; no tool, because a draining server takes no calls."""
    holding.pop().set()
    return PlainTextResponse("done")


@server.tool
def stick() -> str:
    """Never come back, in a thread."""
    sys.stderr.write("stuck\n")
    forever.wait()
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


if "timer" in words:
    threading.Thread(target=forever.wait, name="a stuck timer").start()

drain = 0.0 if "short" in words else 3600.0 if "long" in words else 10.0
closing = 0.3 if "slow" in words else 5.0
routes = [Route("/release", release)]
server.run("http", port=port, drain=drain, closing=closing, routes=routes)
sys.stderr.write("run has returned\n")
