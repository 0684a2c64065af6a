"""The end of a server to which the official client is connected, in every way over HTTP."""

from __future__ import annotations

import signal
import subprocess
from contextlib import suppress

import anyio
import anyio.to_thread
import mcp_types
import pytest
from mcp import Client, MCPError

from .conftest import PATIENCE, running, transport_of
from .ears import WAYS, Ears

pytestmark = pytest.mark.xdist_group("end_to_end")

OVER_HTTP = [way for way in WAYS if way.transport != "stdio"]


class Held:
    """A client in each way, each with a call that runs and, where it can, a stream of changes.

    Attributes:
        begun: Set once a call of each runs.
        errors: What the calls came to.
    """

    def __init__(self, addresses):
        self.begun = anyio.Event()
        self._running = 0
        self.errors = []
        self._addresses = addresses

    async def connect(self, way):
        """Call, and wait for whatever comes of it."""
        mode = "legacy" if way.era == "legacy" else "auto"
        transport = transport_of(way, self._addresses, Ears())
        client = Client(transport, mode=mode, cache=None, read_timeout_seconds=PATIENCE)
        with suppress(ExceptionGroup, RuntimeError):  # the client leaves a server that is gone
            async with client:
                if way.era == "modern":
                    async with client.listen(tools_list_changed=True):
                        await self._hold(client)
                else:
                    await self._hold(client)

    async def _hold(self, client):
        async def on_progress(progress, total, message):
            self._running += 1
            if self._running == len(OVER_HTTP):
                self.begun.set()

        with pytest.raises(MCPError) as raised:
            await client.call_tool("hold", progress_callback=on_progress)

        self.errors.append(raised.value.error)


async def test_ctrl_c_ends_the_server_while_clients_are_connected():
    """Whatever streams are open; each call has an answer, and each stream its end (D1, D2, H3)."""
    with running(stderr=subprocess.PIPE) as (process, addresses), anyio.fail_after(PATIENCE):
        held = Held(addresses)
        async with anyio.create_task_group() as group:
            for way in OVER_HTTP:
                group.start_soon(held.connect, way)

            await held.begun.wait()
            process.send_signal(signal.SIGINT)

        said = (await anyio.to_thread.run_sync(process.communicate))[1]

    assert len(held.errors) == len(OVER_HTTP)
    assert {error.code for error in held.errors} <= {503, mcp_types.CONNECTION_CLOSED}
    assert "without completing response" not in said
    assert "Traceback" not in said
